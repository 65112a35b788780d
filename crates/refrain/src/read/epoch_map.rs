//! The map of an epoch: the origin of each content range.

use std::ops::Range;

use refrain_format::Pattern;

/// The origin of a content range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The store, starting at this offset.
    Store(u64),
    /// A pattern, starting at this phase; `pattern` is its index in the map's list.
    Fill { pattern: u32, phase: u64 },
}

/// The extents of one epoch in searchable form.
pub(crate) struct EpochMap {
    pub(super) content: Range<u64>,
    /// The low 32 bits of the start of each extent, relative to the epoch.
    pub(super) starts: Vec<u32>,
    /// For each 4 GiB of the epoch except the last: how many extents start before their end. Empty
    /// for shorter epochs, so an extent takes 12 bytes.
    pub(super) rounds: Vec<usize>,
    /// The store offset of each extent, or the index of its pattern with the highest bit set.
    pub(super) origins: Vec<u64>,
    pub(super) patterns: Vec<Pattern>,
}

/// Marks an origin that is a pattern's index.
pub(super) const IS_PATTERN: u64 = 1 << 63;

impl EpochMap {
    pub(crate) fn empty(content_start: u64) -> EpochMap {
        EpochMap {
            content: content_start..content_start,
            starts: Vec::new(),
            rounds: Vec::new(),
            origins: Vec::new(),
            patterns: Vec::new(),
        }
    }

    /// Appends an extent.
    pub(super) fn append(&mut self, origin: u64, length: u64) {
        let start = self.content.end - self.content.start;
        let round = (start >> u32::BITS) as usize;
        if self.rounds.len() < round {
            self.rounds.resize(round, self.starts.len());
        }
        self.starts.push(start as u32);
        self.origins.push(origin);
        self.content.end += length;
    }

    /// Appends a fill, starting at byte `phase` of the pattern.
    pub(super) fn append_fill(&mut self, pattern: &Pattern, phase: u64, length: u64) {
        let pattern = pattern.rotated(phase);
        // The same few patterns occur repeatedly.
        if self.patterns.last() != Some(&pattern) {
            self.patterns.push(pattern);
        }
        self.append(IS_PATTERN | (self.patterns.len() as u64 - 1), length);
    }

    pub(crate) fn content(&self) -> Range<u64> {
        self.content.clone()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.starts.len() * 12
            + self.rounds.len() * size_of::<usize>()
            + self.patterns.len() * size_of::<Pattern>()
    }

    /// The pattern of an [`Origin::Fill`].
    pub(crate) fn pattern(&self, number: u32) -> &Pattern {
        &self.patterns[number as usize]
    }

    /// How many bytes at the beginning of `range`, which is inside the epoch, are in a fill of
    /// zeros.
    pub(crate) fn zeros_from(&self, range: Range<u64>) -> u64 {
        match self.origins(range).next() {
            Some((Origin::Fill { pattern, .. }, length)) if self.pattern(pattern).is_zero() => {
                length
            }
            _ => 0,
        }
    }

    /// The number of the extent with the content at `at`, which is inside the epoch.
    pub(super) fn extent_at(&self, at: u64) -> usize {
        let offset = at - self.content.start;
        let round = (offset >> u32::BITS) as usize;
        let end_of = |round: usize| self.rounds.get(round).copied().unwrap_or(self.starts.len());
        let first = round.checked_sub(1).map_or(0, end_of);
        let starts = self.starts.get(first..end_of(round)).unwrap_or_default();
        let before = starts.partition_point(|&start| start <= offset as u32);
        (first + before).saturating_sub(1)
    }

    /// The start of an extent in the content; `None` if there are fewer.
    pub(super) fn start_of(&self, extent: usize) -> Option<u64> {
        let low = u64::from(*self.starts.get(extent)?);
        let round = self.rounds.partition_point(|&before| before <= extent) as u64;
        Some(self.content.start + (round << u32::BITS | low))
    }

    /// The origins of `range`, which is inside the epoch, with their lengths.
    pub(crate) fn origins(&self, range: Range<u64>) -> impl Iterator<Item = (Origin, u64)> + '_ {
        let mut extent = self.extent_at(range.start);
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let start = self.start_of(extent)?;
            let next = self.start_of(extent + 1);
            let end = next.unwrap_or(self.content.end).min(range.end);
            let inside = at - start;
            let origin = match self.origins[extent] {
                pattern if pattern & IS_PATTERN != 0 => Origin::Fill {
                    pattern: pattern as u32,
                    phase: inside,
                },
                offset => Origin::Store(offset + inside),
            };
            let length = end - at;
            extent += 1;
            at = end;
            Some((origin, length))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_any_length_are_found() {
        const ROUND: u64 = 1 << 32;
        let lengths = [
            1,
            ROUND - 1,
            ROUND,
            5,
            3 * ROUND + 7,
            1,
            ROUND - 13,
            ROUND << 18,
            2,
        ];
        let mut map = EpochMap::empty(1000);
        let mut expected = vec![];
        for (number, length) in lengths.into_iter().enumerate() {
            expected.push((
                map.content.end,
                Origin::Store(number as u64 * (ROUND << 20)),
                length,
            ));
            map.append(number as u64 * (ROUND << 20), length);
        }
        let all: Vec<_> = map.origins(map.content()).collect();
        let stated = expected.iter().map(|&(_, origin, length)| (origin, length));
        assert_eq!(all, stated.collect::<Vec<_>>());
        for (number, &(start, origin, length)) in expected.iter().enumerate() {
            assert_eq!(map.start_of(number), Some(start));
            assert_eq!(map.extent_at(start), number);
            assert_eq!(map.extent_at(start + length - 1), number);
            let first: Vec<_> = map.origins(start..start + 1).collect();
            assert_eq!(first, [(origin, 1)]);
        }
        assert_eq!(map.start_of(lengths.len()), None);
    }
}
