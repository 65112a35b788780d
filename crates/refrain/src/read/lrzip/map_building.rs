//! Builds maps extent by extent, from records instead of a frame.

use refrain_format::Pattern;

use crate::read::epoch_map::{EpochMap, IS_PATTERN};

impl EpochMap {
    /// Appends a store range.
    pub(crate) fn push_store(&mut self, offset_in_store: u64, length: u64) {
        let follows = self.last().is_some_and(|(origin, before)| {
            origin & IS_PATTERN == 0 && origin.saturating_add(before) == offset_in_store
        });
        self.push(follows, offset_in_store, length);
    }

    /// Appends a fill.
    pub(crate) fn push_fill(&mut self, pattern: Pattern, length: u64) {
        let last = self.last().filter(|(origin, _)| origin & IS_PATTERN != 0);
        let continues = last.is_some_and(|(origin, before)| {
            self.patterns[origin as u32 as usize].rotated(before) == pattern
        });
        // The same few patterns occur repeatedly.
        let recent = self.patterns.len().saturating_sub(8)..self.patterns.len();
        let number = recent
            .rev()
            .find(|&number| self.patterns[number] == pattern);
        let number = match number {
            _ if continues => 0,
            Some(number) => number,
            None => {
                self.patterns.push(pattern);
                self.patterns.len() - 1
            }
        };
        self.push(continues, IS_PATTERN | number as u64, length);
    }

    fn push(&mut self, follows: bool, origin: u64, length: u64) {
        if follows { self.content.end += length } else { self.append(origin, length) }
    }

    /// The origin and the length of the last extent.
    fn last(&self) -> Option<(u64, u64)> {
        let start = self.start_of(self.starts.len().checked_sub(1)?)?;
        Some((*self.origins.last()?, self.content.end - start))
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.rounds.shrink_to_fit();
        self.origins.shrink_to_fit();
        self.patterns.shrink_to_fit();
    }
}
