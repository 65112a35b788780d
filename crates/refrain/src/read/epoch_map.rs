//! The map of an epoch: the origin of each content range.

use std::ops::Range;

use refrain_format::Pattern;

/// The origin of a content range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The store, from this offset.
    Store(u64),
    /// A pattern, from this phase; `pattern` is its index in the map's list.
    Fill { pattern: u32, phase: u64 },
}

/// The extents of one epoch in a searchable form.
pub(crate) struct EpochMap {
    pub(super) content: Range<u64>,
    /// The start of each extent, relative to the epoch.
    pub(super) starts: Vec<u32>,
    /// The store offset of each extent, or the index of its pattern with the highest bit set.
    pub(super) origins: Vec<u64>,
    pub(super) patterns: Vec<Pattern>,
}

/// Marks an origin that is the index of a pattern.
pub(super) const IS_PATTERN: u64 = 1 << 63;

impl EpochMap {
    /// A map without content.
    pub(crate) fn empty(content_start: u64) -> EpochMap {
        EpochMap {
            content: content_start..content_start,
            starts: Vec::new(),
            origins: Vec::new(),
            patterns: Vec::new(),
        }
    }

    /// Appends an extent. The content must remain below 4 GiB.
    pub(super) fn append(&mut self, origin: u64, length: u64) {
        self.starts
            .push((self.content.end - self.content.start) as u32);
        self.origins.push(origin);
        self.content.end += length;
    }

    /// Appends a part of a fill of another map, from byte `phase` of the fill on.
    pub(super) fn append_part_of(&mut self, map: &EpochMap, pattern: u32, phase: u64, length: u64) {
        let pattern = map.pattern(pattern).rotated(phase);
        // The same few patterns occur repeatedly.
        if self.patterns.last() != Some(&pattern) {
            self.patterns.push(pattern);
        }
        self.append(IS_PATTERN | (self.patterns.len() as u64 - 1), length);
    }

    /// The content range of the epoch.
    pub(crate) fn content(&self) -> Range<u64> {
        self.content.clone()
    }

    /// The memory of the map, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.starts.len() * 12 + self.patterns.len() * size_of::<Pattern>()
    }

    /// The pattern of an [`Origin::Fill`].
    pub(crate) fn pattern(&self, number: u32) -> &Pattern {
        &self.patterns[number as usize]
    }

    /// The number of the extent that holds the content at `at`, which is inside the epoch.
    pub(super) fn extent_at(&self, at: u64) -> usize {
        let offset = (at - self.content.start) as u32;
        self.starts
            .partition_point(|&start| start <= offset)
            .saturating_sub(1)
    }

    /// The origins of `range`, which is inside the epoch, with their lengths.
    pub(crate) fn origins(&self, range: Range<u64>) -> impl Iterator<Item = (Origin, u64)> + '_ {
        let mut extent = self.extent_at(range.start);
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let start = self.content.start + u64::from(*self.starts.get(extent)?);
            let next = self.starts.get(extent + 1);
            let end = next
                .map_or(self.content.end, |&next| {
                    self.content.start + u64::from(next)
                })
                .min(range.end);
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
