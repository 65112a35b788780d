//! Where the bytes of the store stand in the content of a chunk.
//!
//! A byte of the store stands in the content where it came first, and again wherever a copy of it is. Both are kept: the first places in
//! the order of the store, to find any byte; all places in the order of the content, to follow a longer repeat. Two versions of a file
//! repeat each other for long, but the store holds the older one in pieces where it repeats others in turn. A copy from where each piece came
//! first would jump from piece to piece; a copy from the older version is one.

use std::cmp::Reverse;

use crate::write::lrzip::runs::{Position, Run, Runs};

/// Stands for content that is not in the store, the patterns of runs.
const NOT_IN_STORE: u64 = u64::MAX;

/// Runs on each side of the place where a repeat is expected that are searched for it.
const SEARCHED_RUNS: usize = 8;

/// Where a repeat can be copied from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub content: u64,
    /// How much of the repeat stands there.
    pub length_bytes: u64,
}

/// What is known of one chunk.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    /// Where each byte came first; ascending in both.
    first: Runs,
    /// All content, ascending in `content`.
    all: Runs,
    store_end: u64,
    content_end: u64,
}

impl Occurrences {
    /// For a chunk whose literals begin at this offset in the store.
    pub(super) fn new(store_start: u64) -> Occurrences {
        Occurrences {
            store_end: store_start,
            ..Occurrences::default()
        }
    }

    /// BlockContent of the chunk so far, in bytes.
    pub(super) fn content_end(&self) -> u64 {
        self.content_end
    }

    /// End of the store so far.
    pub(super) fn store_end(&self) -> u64 {
        self.store_end
    }

    /// BlockContent that is new in the store follows.
    pub(super) fn push_fresh(&mut self, length: u64) {
        let here = Run {
            store: self.store_end,
            content: self.content_end,
        };
        push(&mut self.first, here);
        self.store_end += length;
        self.push_copied(length, here.store);
    }

    /// BlockContent follows that is in the store at `offset`.
    pub(super) fn push_copied(&mut self, length: u64, offset: u64) {
        let here = Run {
            store: offset,
            content: self.content_end,
        };
        push(&mut self.all, here);
        self.content_end += length;
    }

    /// BlockContent follows that is not in the store.
    pub(super) fn push_pattern(&mut self, length: u64) {
        self.push_copied(length, NOT_IN_STORE);
    }

    /// Forgets the oldest until the list of first places takes at most `memory_bytes` and that of all places half as much. Returns the
    /// store offset from which on the first places are known.
    pub(super) fn forget(&mut self, memory_bytes: usize) -> u64 {
        self.first.forget(memory_bytes);
        self.all.forget(memory_bytes / 2);
        self.first.first().map_or(self.store_end, |run| run.store)
    }

    /// Where `length` bytes of the store from `offset` on, or the first of them, can be copied from. `expected` is where in the content they
    /// would stand if the last repeat went on; that is preferred to a longer one elsewhere if `is_going_on`. `None` if they are forgotten.
    pub(super) fn place(
        &self,
        offset: u64,
        length: u64,
        expected: Option<u64>,
        is_going_on: bool,
    ) -> Option<Place> {
        let mut best: Option<Place> = None;
        if let Some(expected) = expected
            && let Some(at) = self.run_at(expected)
        {
            best = self.measured(at, expected, offset, length);
            if best.is_some_and(|best| is_going_on || best.length_bytes == length) {
                return best;
            }
            best = longer(best, self.nearby(at, expected, offset, length));
        }
        match best {
            Some(place) if place.length_bytes == length => best,
            _ => longer(best, self.first_place(offset, length)),
        }
    }

    /// The longest of the places around the expected one, which is in this run; of two as long the nearer one.
    fn nearby(&self, at: Position, expected: u64, offset: u64, length: u64) -> Option<Place> {
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

    /// Where they came first.
    fn first_place(&self, offset: u64, length: u64) -> Option<Place> {
        let at = self.first.last_at(|run| run.store <= offset)?;
        let run = self.first.get(at)?;
        let next = self.first.next(at).and_then(|next| self.first.get(next));
        let end = next.map_or(self.store_end, |next| next.store);
        let here = length.min(end.checked_sub(offset).filter(|&bytes| bytes > 0)?);
        let content = run.content + (offset - run.store);
        // The run may be forgotten in the other list, which only tells how it goes on.
        let goes_on = (self.run_at(content))
            .and_then(|at| self.measured(at, content, offset, length))
            .map_or(0, |place| place.length_bytes);
        Some(Place {
            content,
            length_bytes: here.max(goes_on),
        })
    }

    /// The run that a place in the content belongs to.
    fn run_at(&self, content: u64) -> Option<Position> {
        self.all.last_at(|run| run.content <= content)
    }

    /// How much of the repeat stands at `content`, which belongs to this run.
    fn measured(&self, at: Position, content: u64, offset: u64, length: u64) -> Option<Place> {
        let (mut at, mut measured) = (Some(at), 0);
        while measured < length
            && let Some(here) = at
            && let Some(run) = self.all.get(here)
        {
            let (place, wanted) = (content + measured, offset + measured);
            let next = self.all.next(here);
            let next_run = next.and_then(|next| self.all.get(next));
            let end = next_run.map_or(self.content_end, |next| next.content);
            let is_there = run.store != NOT_IN_STORE
                && run.store + (place - run.content) == wanted
                && place < end;
            if !is_there {
                break;
            }
            measured += (end - place).min(length - measured);
            at = next;
        }
        (measured > 0).then_some(Place {
            content,
            length_bytes: measured,
        })
    }
}

/// Appends a run, unless the last one goes on.
fn push(runs: &mut Runs, here: Run) {
    let goes_on = |last: Run| match (last.store, here.store) {
        (NOT_IN_STORE, there) | (there, NOT_IN_STORE) => there == NOT_IN_STORE,
        (before, now) => now.checked_sub(before) == Some(here.content - last.content),
    };
    if !runs.last().is_some_and(goes_on) {
        runs.push(here);
    }
}

/// The longer one, or the first of two as long.
fn longer(a: Option<Place>, b: Option<Place>) -> Option<Place> {
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

    /// The slow twin: the store offset of each byte of the content.
    fn agreeing(content: &[u64], at: u64, offset: u64, length: u64) -> u64 {
        let there = content[at as usize..].iter().zip(offset..offset + length);
        there.take_while(|(a, b)| **a == *b).count() as u64
    }

    #[test]
    fn a_place_holds_what_it_says_and_no_known_one_holds_more() {
        for seed in 0..40 {
            let mut numbers = Rng::new(seed);
            let (mut seen, mut content) = (Occurrences::new(1000), Vec::new());
            let mut store_end = 1000;
            for _ in 0..200 {
                let length = 1 + numbers.below(LENGTH_MAX);
                match numbers.below(4) {
                    0 => {
                        seen.push_pattern(length);
                        content.extend((0..length).map(|_| NOT_IN_STORE));
                    }
                    1 if store_end > 1000 => {
                        let offset = 1000 + numbers.below(store_end - 1000);
                        let length = length.min(store_end - offset);
                        seen.push_copied(length, offset);
                        content.extend(offset..offset + length);
                    }
                    _ => {
                        seen.push_fresh(length);
                        content.extend(store_end..store_end + length);
                        store_end += length;
                    }
                }
                assert_eq!(
                    (seen.content_end(), seen.store_end()),
                    (content.len() as u64, store_end)
                );
                if store_end == 1000 {
                    continue;
                }
                let offset = 1000 + numbers.below(store_end - 1000);
                let length = (1 + numbers.below(LENGTH_MAX)).min(store_end - offset);
                let expected = numbers.below(content.len() as u64);
                let place = seen.place(offset, length, Some(expected), false).unwrap();
                let agreed = |at| agreeing(&content, at, offset, length);
                assert_eq!(agreed(place.content), place.length_bytes, "seed {seed}");
                let first = content.iter().position(|&byte| byte == offset).unwrap() as u64;
                assert!(agreed(first).max(agreed(expected)) <= place.length_bytes);
                let going_on = seen.place(offset, length, Some(expected), true).unwrap();
                match agreed(expected) {
                    0 => assert_eq!(going_on, place),
                    bytes => {
                        assert_eq!((going_on.content, going_on.length_bytes), (expected, bytes))
                    }
                }
            }
        }
    }

    #[test]
    fn what_goes_on_is_one_place_though_the_store_has_it_in_pieces() {
        let mut seen = Occurrences::new(0);
        seen.push_fresh(100);
        seen.push_fresh(50);
        seen.push_copied(30, 20);
        seen.push_fresh(40);
        let whole = seen.place(100, 50, None, false);
        assert_eq!(
            whole,
            Some(Place {
                content: 100,
                length_bytes: 50
            })
        );
        assert_eq!(
            seen.place(20, 30, Some(150), true),
            Some(Place {
                content: 150,
                length_bytes: 30
            })
        );
        assert_eq!(
            seen.place(20, 30, Some(151), false),
            Some(Place {
                content: 150,
                length_bytes: 30
            })
        );
        assert_eq!(seen.forget(0), seen.store_end());
        assert_eq!(seen.place(100, 50, None, false), None);
    }
}
