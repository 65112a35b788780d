//! Converts records to extents: every match is resolved to the store, so no extent refers to
//! content.
//!
//! The extents of a match's source are found in the maps of earlier content. A match that overlaps
//! itself repeats a period. If the period is short, or its bytes have a short period, it becomes a
//! fill; otherwise the extents of its first period are repeated.

use std::sync::Arc;

use refrain_format::Pattern;
use refrain_format::limits::PATTERN_BYTES_MAX;

use crate::error::{Error, Result, mebibytes};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::store_reader::{Depth, StoreReader};

/// The content length of one map.
pub(super) const EPOCH_BYTES: u64 = 4 << 20;
/// Periods up to this length are searched for shorter ones: runs of zeros often have long
/// distances.
const PERIOD_BYTES_MAX: u64 = 4096;

/// The maps of the content so far.
pub(super) struct Flattener {
    /// The complete maps, in content order.
    done: Vec<Arc<EpochMap>>,
    current: EpochMap,
    /// The store offset of the first unused literal.
    store_at: u64,
    memory_bytes: u64,
    memory_bytes_max: u64,
    /// Maps that end before this content offset may be evicted.
    floor: u64,
    pieces: Vec<(SourcePart, u64)>,
}

#[derive(Debug, Clone, Copy)]
enum SourcePart {
    Store(u64),
    Fill(Pattern),
}

impl Flattener {
    /// Starts at `content_start`, with the first literal at `store_start`.
    pub(super) fn new(content_start: u64, store_start: u64, memory_bytes_max: u64) -> Flattener {
        Flattener {
            done: Vec::new(),
            current: EpochMap::empty(content_start),
            store_at: store_start,
            memory_bytes: 0,
            memory_bytes_max,
            floor: 0,
            pieces: Vec::new(),
        }
    }

    /// The number of mapped content bytes.
    pub(super) fn content_bytes(&self) -> u64 {
        self.current.content().end
    }

    /// The number of literals used so far.
    pub(super) fn store_bytes(&self) -> u64 {
        self.store_at
    }

    /// How many content bytes fit into the current map.
    pub(super) fn room_bytes(&self) -> u64 {
        let content = self.current.content();
        EPOCH_BYTES - (content.end - content.start)
    }

    /// Permits the eviction of maps of earlier content: matches hardly ever leave their chunk.
    pub(super) fn set_floor(&mut self, content_at: u64) {
        self.floor = content_at;
    }

    /// Appends the next literals, no more than fit.
    pub(super) fn literals(&mut self, length: u64) {
        self.current.push_store(self.store_at, length);
        self.store_at += length;
    }

    /// Appends a copy of earlier content, no more than fits.
    pub(super) fn copy(&mut self, length: u64, distance: u64, store: &StoreReader) -> Result<()> {
        let at = self.content_bytes();
        let start = at.checked_sub(distance).ok_or_else(|| {
            let message = format!("a match reaches {distance} bytes back, where there is nothing");
            Error::damaged(message).at_content(at)
        })?;
        if distance < length
            && let Some(pattern) = self.period(start, distance, store)?
        {
            self.current.push_fill(pattern, length);
            return self.check_memory();
        }
        let mut left = length;
        while left > 0 {
            let count = left.min(distance);
            self.collect(start + (length - left), count)?;
            let mut pieces = std::mem::take(&mut self.pieces);
            for (piece, length) in pieces.drain(..) {
                match piece {
                    SourcePart::Store(offset) => self.current.push_store(offset, length),
                    SourcePart::Fill(pattern) => self.current.push_fill(pattern, length),
                }
            }
            self.pieces = pieces;
            left -= count;
            self.check_memory()?;
        }
        Ok(())
    }

    /// Takes the current map when it is full or a chunk ends, and starts the next one.
    pub(super) fn take_map(&mut self) -> Option<Arc<EpochMap>> {
        let content = self.current.content();
        if content.is_empty() {
            return None;
        }
        let mut map = std::mem::replace(&mut self.current, EpochMap::empty(content.end));
        map.shrink();
        let map = Arc::new(map);
        self.memory_bytes += memory_of(&map);
        self.done.push(map.clone());
        Some(map)
    }

    fn check_memory(&mut self) -> Result<()> {
        let used = |this: &Self| this.memory_bytes + this.current.memory_bytes() as u64;
        if used(self) <= self.memory_bytes_max {
            return Ok(());
        }
        let gone = self
            .done
            .partition_point(|map| map.content().end <= self.floor);
        for map in self.done.drain(..gone) {
            self.memory_bytes -= memory_of(&map);
        }
        if used(self) <= self.memory_bytes_max {
            return Ok(());
        }
        Err(Error::limit(format!(
            "the matches of this archive need more than {} of memory: raise the memory limit",
            mebibytes(self.memory_bytes_max)
        ))
        .at_content(self.content_bytes()))
    }

    fn map_of(&self, content_at: u64) -> Result<&EpochMap> {
        if content_at >= self.current.content().start {
            return Ok(&self.current);
        }
        let after = self
            .done
            .partition_point(|map| map.content().end <= content_at);
        let map = self
            .done
            .get(after)
            .filter(|map| map.content().contains(&content_at));
        Ok(map.ok_or_else(|| {
            Error::limit("a match reaches into an earlier chunk that is no longer in memory: raise the memory limit")
                .at_content(self.content_bytes())
        })?)
    }

    /// Collects the origins of a content range in `pieces`.
    fn collect(&mut self, start: u64, length: u64) -> Result<()> {
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut at = start;
        while at < start + length {
            let map = self.map_of(at)?;
            let end = map.content().end.min(start + length);
            for (origin, length) in map.origins(at..end) {
                let piece = match origin {
                    Origin::Store(offset) => SourcePart::Store(offset),
                    Origin::Fill { pattern, phase } => {
                        SourcePart::Fill(map.pattern(pattern).rotated(phase))
                    }
                };
                pieces.push((piece, length));
            }
            at = end;
        }
        self.pieces = pieces;
        Ok(())
    }

    /// The short period, if any, of the `distance` bytes of content at `start`, which are repeated.
    fn period(
        &mut self,
        start: u64,
        distance: u64,
        store: &StoreReader,
    ) -> Result<Option<Pattern>> {
        let map = self.map_of(start)?;
        let mut first = map.origins(start..map.content().end.min(start + distance));
        if let Some((Origin::Fill { pattern, phase }, length)) = first.next() {
            let pattern = map.pattern(pattern);
            if length == distance && distance.is_multiple_of(pattern.as_bytes().len() as u64) {
                return Ok(Some(pattern.rotated(phase)));
            }
        }
        drop(first);
        if distance > PERIOD_BYTES_MAX {
            return Ok(None);
        }
        let mut bytes = vec![0; distance as usize];
        let mut done = 0;
        while done < bytes.len() {
            let at = start + done as u64;
            let map = self.map_of(at)?;
            let count = (map.content().end - at).min((bytes.len() - done) as u64) as usize;
            let part = &mut bytes[done..done + count];
            store.fill(map, at, part, Depth::Whole, None)?;
            done += count;
        }
        Ok(shortest_period(&bytes).and_then(|period| Pattern::new(period).ok()))
    }
}

/// The memory of a retained map, including its list entry.
fn memory_of(map: &EpochMap) -> u64 {
    (map.memory_bytes() + 2 * size_of::<EpochMap>()) as u64
}

/// The shortest period that fits a pattern and divides the length of `bytes`.
fn shortest_period(bytes: &[u8]) -> Option<&[u8]> {
    let lengths = 1..=bytes.len().min(PATTERN_BYTES_MAX);
    lengths
        .filter(|length| bytes.len().is_multiple_of(*length))
        .find(|&length| bytes.iter().zip(&bytes[length..]).all(|(a, b)| a == b))
        .and_then(|length| bytes.get(..length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_periods() {
        assert_eq!(shortest_period(&[0; 4096]), Some(&[0][..]));
        assert_eq!(shortest_period(b"abcabc"), Some(&b"abc"[..]));
        assert_eq!(shortest_period(b"abcab"), Some(&b"abcab"[..]));
        let long: Vec<u8> = (0..65).collect();
        assert_eq!(shortest_period(&long), None);
        assert_eq!(shortest_period(&long.repeat(2)), None);
        assert_eq!(shortest_period(&long[..64].repeat(2)), Some(&long[..64]));
    }
}
