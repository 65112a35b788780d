//! A long list of runs that grows at one end and is evicted at the other, in equal chunks, so that
//! growing never doubles its memory.

use std::collections::VecDeque;

/// The number of runs in one chunk of the list.
const CHUNK_RUNS: usize = 4096;

/// Content starting at `content` has the store bytes starting at `store`, up to the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredRange {
    pub store: u64,
    pub content: u64,
}

/// A run in twelve bytes: both halves of `store`, and `content` relative to the start of the list's
/// chunk.
type EncodedRun = [u32; 3];

#[derive(Debug)]
struct RunChunk {
    content_start: u64,
    runs: Vec<EncodedRun>,
}

impl RunChunk {
    fn starting_at(content_start: u64) -> RunChunk {
        RunChunk {
            content_start,
            runs: Vec::with_capacity(CHUNK_RUNS),
        }
    }

    fn get(&self, index: usize) -> Option<StoredRange> {
        self.runs.get(index).map(|run| self.decoded(run))
    }

    fn decoded(&self, &[low, high, inside]: &EncodedRun) -> StoredRange {
        StoredRange {
            store: u64::from(low) | u64::from(high) << 32,
            content: self.content_start + u64::from(inside),
        }
    }
}

/// Runs whose `content` ascends.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pieces: VecDeque<RunChunk>,
}

/// The position of a run in the list, valid until the list changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    piece: usize,
    index: usize,
}

impl Runs {
    pub(super) fn push(&mut self, run: StoredRange) {
        let inside = |piece: &RunChunk| u32::try_from(run.content - piece.content_start).ok();
        let has_room = |piece: &RunChunk| piece.runs.len() < CHUNK_RUNS && inside(piece).is_some();
        if !self.pieces.back().is_some_and(has_room) {
            self.pieces.push_back(RunChunk::starting_at(run.content));
        }
        if let Some(piece) = self.pieces.back_mut()
            && let Some(inside) = inside(piece)
        {
            let (low, high) = (run.store as u32, (run.store >> 32) as u32);
            piece.runs.push([low, high, inside]);
        }
    }

    pub(super) fn first(&self) -> Option<StoredRange> {
        self.pieces.front()?.get(0)
    }

    pub(super) fn last(&self) -> Option<StoredRange> {
        let piece = self.pieces.back()?;
        piece.runs.last().map(|run| piece.decoded(run))
    }

    pub(super) fn get(&self, at: Position) -> Option<StoredRange> {
        self.pieces.get(at.piece)?.get(at.index)
    }

    /// The position of the next run, if there is one.
    pub(super) fn next(&self, at: Position) -> Option<Position> {
        let index = at.index + 1;
        let next = if index < self.pieces.get(at.piece)?.runs.len() {
            Position { index, ..at }
        } else {
            Position {
                piece: at.piece + 1,
                index: 0,
            }
        };
        (next.piece < self.pieces.len()).then_some(next)
    }

    pub(super) fn previous(&self, at: Position) -> Option<Position> {
        if let Some(index) = at.index.checked_sub(1) {
            return Some(Position { index, ..at });
        }
        let piece = at.piece.checked_sub(1)?;
        let index = self.pieces.get(piece)?.runs.len().checked_sub(1)?;
        Some(Position { piece, index })
    }

    /// The last run for which `is_before` is true; it must be true for all runs up to that one and
    /// false after it.
    pub(super) fn last_at(&self, is_before: impl Fn(&StoredRange) -> bool) -> Option<Position> {
        let starts_before = |piece: &RunChunk| piece.get(0).is_some_and(|run| is_before(&run));
        let piece = self.pieces.partition_point(starts_before).checked_sub(1)?;
        let runs = self.pieces.get(piece)?;
        let count = (runs.runs).partition_point(|run| is_before(&runs.decoded(run)));
        count.checked_sub(1).map(|index| Position { piece, index })
    }

    /// Evicts the oldest runs until the list takes at most `memory_bytes`.
    pub(super) fn shrink_to(&mut self, memory_bytes: usize) {
        let pieces_max = memory_bytes / (CHUNK_RUNS * size_of::<EncodedRun>());
        let forgotten = self.pieces.len().saturating_sub(pieces_max);
        self.pieces.drain(..forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_pieces_is_a_list() {
        // Sometimes farther apart than 32 bits can express within a chunk of the list.
        let run = |number: u64| StoredRange {
            store: number << 33 | number,
            content: number * 10 + ((number / 3000) << 32),
        };
        let count = 3 * CHUNK_RUNS as u64;
        let mut runs = Runs::default();
        (0..count).for_each(|number| runs.push(run(number)));
        assert_eq!(
            (runs.first(), runs.last()),
            (Some(run(0)), Some(run(count - 1)))
        );
        let mut at = runs.last_at(|run| run.content == 0);
        for number in 0..count {
            assert_eq!(at.and_then(|at| runs.get(at)), Some(run(number)));
            assert_eq!(
                at,
                runs.last_at(|other| other.content <= run(number).content + 5)
            );
            let next = at.and_then(|at| runs.next(at));
            assert_eq!(next.and_then(|next| runs.previous(next)), next.and(at));
            at = next;
        }
        assert_eq!(at, None);
        assert_eq!(runs.last_at(|_| false), None);
        runs.shrink_to(2 * CHUNK_RUNS * size_of::<EncodedRun>());
        assert_eq!(runs.last(), Some(run(count - 1)));
        assert!(runs.first().is_some_and(|first| first != run(0)));
        runs.shrink_to(0);
        assert_eq!((runs.first(), runs.last()), (None, None));
    }
}
