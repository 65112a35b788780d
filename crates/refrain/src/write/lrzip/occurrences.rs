//! Where the bytes of the store occur in a chunk's content.
//!
//! A store byte occurs in the content where it first appeared, and again at every copy. Both are
//! recorded: first occurrences in store order, to find any byte, and all occurrences in content
//! order, to follow a longer repeat. Two versions of a file repeat each other over long ranges, but
//! the store holds the older one in pieces where it repeats other files. Copying each piece from
//! its first occurrence takes one record per piece; copying from the older version takes one
//! record.

use std::cmp::Reverse;

use crate::write::lrzip::runs::{Position, Runs, StoredRange};

/// Marks content outside of the store: the patterns of runs.
const NOT_IN_STORE: u64 = u64::MAX;

/// How many runs on each side of the expected position are searched for a repeat.
const SEARCHED_RUNS: usize = 8;

/// A content range from which a repeat can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopySource {
    pub content: u64,
    /// How much of the repeat the range contains.
    pub length_bytes: u64,
}

/// The occurrences in one chunk.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    /// The first occurrence of each byte, ascending in both fields.
    first: Runs,
    /// All occurrences, ascending in `content`.
    all: Runs,
    store_end: u64,
    content_end: u64,
}

impl Occurrences {
    /// For a chunk whose literals start at this offset in the store.
    pub(super) fn new(store_start: u64) -> Occurrences {
        Occurrences {
            store_end: store_start,
            ..Occurrences::default()
        }
    }

    /// The length of the chunk's content so far.
    pub(super) fn content_end(&self) -> u64 {
        self.content_end
    }

    /// The end of the store so far.
    pub(super) fn store_end(&self) -> u64 {
        self.store_end
    }

    /// Appends content new to the store.
    pub(super) fn push_fresh(&mut self, length: u64) {
        let here = StoredRange {
            store: self.store_end,
            content: self.content_end,
        };
        push(&mut self.first, here);
        self.store_end += length;
        self.push_copied(length, here.store);
    }

    /// Appends content that the store has at `offset`.
    pub(super) fn push_copied(&mut self, length: u64, offset: u64) {
        let here = StoredRange {
            store: offset,
            content: self.content_end,
        };
        push(&mut self.all, here);
        self.content_end += length;
    }

    /// Appends content outside of the store.
    pub(super) fn push_pattern(&mut self, length: u64) {
        self.push_copied(length, NOT_IN_STORE);
    }

    /// Evicts the oldest occurrences until first occurrences take at most `memory_bytes` and all
    /// occurrences half as much. Returns the store offset above which first occurrences are known.
    pub(super) fn shrink_to(&mut self, memory_bytes: usize) -> u64 {
        self.first.shrink_to(memory_bytes);
        self.all.shrink_to(memory_bytes / 2);
        self.first.first().map_or(self.store_end, |run| run.store)
    }

    /// Finds where `length` bytes of the store at `offset`, or the first of them, can be copied
    /// from. `expected` is their position in the content if the last repeat continues; with
    /// `is_continuing` it is preferred to a longer range elsewhere. `None` if the occurrences were
    /// evicted.
    pub(super) fn find(
        &self,
        offset: u64,
        length: u64,
        expected: Option<u64>,
        is_continuing: bool,
    ) -> Option<CopySource> {
        let mut best: Option<CopySource> = None;
        if let Some(expected) = expected
            && let Some(at) = self.run_at(expected)
        {
            best = self.measured(at, expected, offset, length);
            if best.is_some_and(|best| is_continuing || best.length_bytes == length) {
                return best;
            }
            best = longer(best, self.nearby(at, expected, offset, length));
        }
        match best {
            Some(place) if place.length_bytes == length => best,
            _ => longer(best, self.first_occurrence(offset, length)),
        }
    }

    /// The longest range near the expected position, which is in this run; of two equally long ones
    /// the nearer one.
    fn nearby(&self, at: Position, expected: u64, offset: u64, length: u64) -> Option<CopySource> {
        let back = std::iter::successors(Some(at), |&at| self.all.previous(at));
        let start = back.take(1 + SEARCHED_RUNS).last()?;
        let places = std::iter::successors(Some(start), |&at| self.all.next(at));
        let places = places.take(2 * SEARCHED_RUNS + 1).filter_map(|at| {
            let run = self.all.get(at)?;
            let inside = offset.checked_sub(run.store)?;
            self.measured(at, run.content + inside, offset, length)
        });
        places.max_by_key(|place| {
            (
                place.length_bytes,
                Reverse(place.content.abs_diff(expected)),
            )
        })
    }

    fn first_occurrence(&self, offset: u64, length: u64) -> Option<CopySource> {
        let at = self.first.last_at(|run| run.store <= offset)?;
        let run = self.first.get(at)?;
        let next = self.first.next(at).and_then(|next| self.first.get(next));
        let end = next.map_or(self.store_end, |next| next.store);
        let here = length.min(end.checked_sub(offset).filter(|&bytes| bytes > 0)?);
        let content = run.content + (offset - run.store);
        // The run may be evicted from the other list, which only shows how it continues.
        let continued_bytes = (self.run_at(content))
            .and_then(|at| self.measured(at, content, offset, length))
            .map_or(0, |place| place.length_bytes);
        Some(CopySource {
            content,
            length_bytes: here.max(continued_bytes),
        })
    }

    fn run_at(&self, content: u64) -> Option<Position> {
        self.all.last_at(|run| run.content <= content)
    }

    /// Measures how much of the repeat is at `content`, which is in this run.
    fn measured(&self, at: Position, content: u64, offset: u64, length: u64) -> Option<CopySource> {
        let (mut at, mut measured) = (Some(at), 0);
        while measured < length
            && let Some(here) = at
            && let Some(run) = self.all.get(here)
        {
            let (position, wanted) = (content + measured, offset + measured);
            let next = self.all.next(here);
            let next_run = next.and_then(|next| self.all.get(next));
            let end = next_run.map_or(self.content_end, |next| next.content);
            let is_there = run.store != NOT_IN_STORE
                && run.store + (position - run.content) == wanted
                && position < end;
            if !is_there {
                break;
            }
            measured += (end - position).min(length - measured);
            at = next;
        }
        (measured > 0).then_some(CopySource {
            content,
            length_bytes: measured,
        })
    }
}

/// Appends a run, unless it continues the last one.
fn push(runs: &mut Runs, here: StoredRange) {
    let continues = |last: StoredRange| match (last.store, here.store) {
        (NOT_IN_STORE, there) | (there, NOT_IN_STORE) => there == NOT_IN_STORE,
        (before, now) => now.checked_sub(before) == Some(here.content - last.content),
    };
    if !runs.last().is_some_and(continues) {
        runs.push(here);
    }
}

/// The longer one; the first of two equally long ones.
fn longer(a: Option<CopySource>, b: Option<CopySource>) -> Option<CopySource> {
    match (a, b) {
        (Some(one), Some(other)) if other.length_bytes > one.length_bytes => b,
        (Some(_), _) => a,
        (None, _) => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_testkit::Rng;

    const LENGTH_MAX: u64 = 60;

    /// The reference implementation, given the store offset of each content byte.
    fn agreeing(content: &[u64], at: u64, offset: u64, length: u64) -> u64 {
        let there = content[at as usize..].iter().zip(offset..offset + length);
        there.take_while(|(a, b)| **a == *b).count() as u64
    }

    #[test]
    fn finds_ranges_as_long_as_the_reference_implementation() {
        for seed in 0..40 {
            let mut numbers = Rng::new(seed);
            let (mut occurrences, mut content) = (Occurrences::new(1000), Vec::new());
            let mut store_end = 1000;
            for _ in 0..200 {
                let length = 1 + numbers.below(LENGTH_MAX);
                match numbers.below(4) {
                    0 => {
                        occurrences.push_pattern(length);
                        content.extend((0..length).map(|_| NOT_IN_STORE));
                    }
                    1 if store_end > 1000 => {
                        let offset = 1000 + numbers.below(store_end - 1000);
                        let length = length.min(store_end - offset);
                        occurrences.push_copied(length, offset);
                        content.extend(offset..offset + length);
                    }
                    _ => {
                        occurrences.push_fresh(length);
                        content.extend(store_end..store_end + length);
                        store_end += length;
                    }
                }
                assert_eq!(
                    (occurrences.content_end(), occurrences.store_end()),
                    (content.len() as u64, store_end)
                );
                if store_end == 1000 {
                    continue;
                }
                let offset = 1000 + numbers.below(store_end - 1000);
                let length = (1 + numbers.below(LENGTH_MAX)).min(store_end - offset);
                let expected = numbers.below(content.len() as u64);
                let place = occurrences
                    .find(offset, length, Some(expected), false)
                    .unwrap();
                let agreed = |at| agreeing(&content, at, offset, length);
                assert_eq!(agreed(place.content), place.length_bytes, "seed {seed}");
                let first = content.iter().position(|&byte| byte == offset).unwrap() as u64;
                assert!(agreed(first).max(agreed(expected)) <= place.length_bytes);
                let continued = occurrences
                    .find(offset, length, Some(expected), true)
                    .unwrap();
                match agreed(expected) {
                    0 => assert_eq!(continued, place),
                    bytes => {
                        assert_eq!(
                            (continued.content, continued.length_bytes),
                            (expected, bytes)
                        )
                    }
                }
            }
        }
    }

    #[test]
    fn a_continued_repeat_is_one_range_although_the_store_has_it_in_pieces() {
        let mut occurrences = Occurrences::new(0);
        occurrences.push_fresh(100);
        occurrences.push_fresh(50);
        occurrences.push_copied(30, 20);
        occurrences.push_fresh(40);
        let whole = occurrences.find(100, 50, None, false);
        assert_eq!(
            whole,
            Some(CopySource {
                content: 100,
                length_bytes: 50
            })
        );
        assert_eq!(
            occurrences.find(20, 30, Some(150), true),
            Some(CopySource {
                content: 150,
                length_bytes: 30
            })
        );
        assert_eq!(
            occurrences.find(20, 30, Some(151), false),
            Some(CopySource {
                content: 150,
                length_bytes: 30
            })
        );
        assert_eq!(occurrences.shrink_to(0), occurrences.store_end());
        assert_eq!(occurrences.find(100, 50, None, false), None);
    }
}
