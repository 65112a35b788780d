//! Trails: the extents of earlier content that a segment probably repeats, as the next version of a
//! file repeats the last one.
//!
//! Where the bytes are the same at the same place, the segment gets the extents of the earlier
//! content, passages among them that are too short to have an anchor. Where they moved, a repeat
//! that an anchor found continues through the extents next to it. Bytes are compared in both cases:
//! a trail is only a guess.
#![forbid(unsafe_code)]

use crate::continuation::{Continuation, Direction};

/// The distance of the places in a segment that are compared with the trail behind bytes that
/// differ.
pub(crate) const PROBE_BYTES: usize = 512;

/// An extent of earlier content that is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailPiece {
    /// Where it is in the earlier content.
    pub offset_in_content: u64,
    /// Its length in bytes, at least 1.
    pub length: u64,
    /// Where its bytes are in the store.
    pub offset_in_store: u64,
    /// Where content has them to which the archive may refer, if it may.
    pub source_in_content: Option<u64>,
}

impl TrailPiece {
    fn end_in_content(&self) -> u64 {
        self.offset_in_content + self.length
    }

    fn end_in_store(&self) -> u64 {
        self.offset_in_store + self.length
    }
}

/// Bytes of a segment from a position on that are probably those of the earlier content from an
/// offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Where in the segment it begins.
    pub position: u32,
    /// The offset in the earlier content.
    pub offset_in_content: u64,
}

/// What a segment probably repeats.
#[derive(Debug, Default)]
pub struct Trail {
    /// By ascending offset in the content; they do not overlap.
    pieces: Vec<TrailPiece>,
    /// The numbers of the pieces, by where they begin and where they end in the store.
    by_start: Vec<u32>,
    by_end: Vec<u32>,
    /// By ascending position.
    alignments: Vec<Alignment>,
}

impl Trail {
    /// `pieces` may be in any order, and some of them given twice.
    #[must_use]
    pub fn new(mut pieces: Vec<TrailPiece>, mut alignments: Vec<Alignment>) -> Trail {
        pieces.sort_by_key(|piece| (piece.offset_in_content, piece.length));
        pieces.dedup_by(|later, piece| later.offset_in_content < piece.end_in_content());
        alignments.sort_by_key(|alignment| alignment.position);
        let numbers = || (0..pieces.len() as u32).collect::<Vec<_>>();
        let (mut by_start, mut by_end) = (numbers(), numbers());
        by_start.sort_by_key(|&number| pieces[number as usize].offset_in_store);
        by_end.sort_by_key(|&number| pieces[number as usize].end_in_store());
        Trail {
            pieces,
            by_start,
            by_end,
            alignments,
        }
    }

    /// The piece aligned with `position` of the segment, or the next one before `limit`: where in
    /// the segment it is from there on, and where in the store.
    pub(crate) fn aligned(&self, position: usize, limit: usize) -> Option<AlignedPiece> {
        let mut next = self
            .alignments
            .partition_point(|alignment| alignment.position as usize <= position)
            .saturating_sub(1);
        while let Some(alignment) = self.alignments.get(next) {
            next += 1;
            let later = self.alignments.get(next).map(|next| next.position as usize);
            let limit = limit.min(later.unwrap_or(limit));
            let from = position.max(alignment.position as usize);
            if from >= limit {
                // Either the next alignment begins at once, or none is left.
                if later.is_none_or(|later| later > limit) {
                    return None;
                }
                continue;
            }
            let offset = alignment.offset_in_content + (from - alignment.position as usize) as u64;
            let number = (self.pieces).partition_point(|piece| piece.end_in_content() <= offset);
            let Some(piece) = self.pieces.get(number) else {
                continue;
            };
            let skipped = piece.offset_in_content.saturating_sub(offset);
            let start =
                usize::try_from(skipped).map_or(limit, |skipped| from.saturating_add(skipped));
            if start >= limit {
                continue;
            }
            let inside = (offset + skipped) - piece.offset_in_content;
            let left = usize::try_from(piece.length - inside).unwrap_or(usize::MAX);
            return Some(AlignedPiece {
                start,
                end: limit.min(start.saturating_add(left)),
                offset_in_store: piece.offset_in_store + inside,
                source_in_content: piece.source_in_content.map(|offset| offset + inside),
            });
        }
        None
    }

    /// The piece that followed one which ends at `offset_in_store`, or came before one which begins
    /// there.
    pub(crate) fn neighbour(
        &self,
        direction: Direction,
        offset_in_store: u64,
    ) -> Option<Continuation> {
        let is_forward = direction == Direction::Forward;
        let edge = |piece: &TrailPiece| {
            if is_forward { piece.end_in_store() } else { piece.offset_in_store }
        };
        let numbers = if is_forward { &self.by_end } else { &self.by_start };
        let edge_of = |number: u32| edge(&self.pieces[number as usize]);
        let first = numbers.partition_point(|&number| edge_of(number) < offset_in_store);
        let number = *numbers.get(first)?;
        let piece = self.pieces.get(number as usize)?;
        let next = if is_forward { number.checked_add(1) } else { number.checked_sub(1) };
        let next = self.pieces.get(next? as usize)?;
        let (before, after) = if is_forward { (piece, next) } else { (next, piece) };
        let follows =
            edge(piece) == offset_in_store && before.end_in_content() == after.offset_in_content;
        follows.then(|| Continuation {
            offset_in_store: if is_forward { next.offset_in_store } else { next.end_in_store() },
            // A piece may be larger than any segment.
            length: u32::try_from(next.length).unwrap_or(u32::MAX),
        })
    }
}

/// A range of a segment that probably equals bytes of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlignedPiece {
    pub start: usize,
    pub end: usize,
    pub offset_in_store: u64,
    pub source_in_content: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset_in_content: u64, length: u64, offset_in_store: u64) -> TrailPiece {
        TrailPiece {
            offset_in_content,
            length,
            offset_in_store,
            source_in_content: None,
        }
    }

    fn alignment(position: u32, offset_in_content: u64) -> Alignment {
        Alignment {
            position,
            offset_in_content,
        }
    }

    #[test]
    fn pieces_are_found_where_they_are_aligned() {
        // 100..110 is a fill.
        let pieces = vec![piece(110, 20, 7), piece(90, 10, 500), piece(130, 5, 90)];
        let trail = Trail::new(pieces, vec![alignment(0, 95), alignment(30, 129)]);
        let found = |position, limit| {
            let found = trail.aligned(position, limit)?;
            Some((found.start, found.end, found.offset_in_store))
        };
        assert_eq!(found(0, 100), Some((0, 5, 505)));
        assert_eq!(found(2, 4), Some((2, 4, 507)));
        assert_eq!(found(5, 100), Some((15, 30, 7)));
        assert_eq!(found(5, 15), None);
        assert_eq!(found(30, 100), Some((30, 31, 26)));
        assert_eq!(found(31, 100), Some((31, 36, 90)));
        assert_eq!(found(36, 100), None);
        assert_eq!(Trail::default().aligned(0, 10), None);
    }

    #[test]
    fn neighbours_are_found_by_the_store() {
        let pieces = vec![piece(90, 10, 500), piece(100, 20, 7), piece(130, 5, 90)];
        let trail = Trail::new(pieces, vec![]);
        let neighbour = |direction, offset| {
            let found = trail.neighbour(direction, offset)?;
            Some((found.offset_in_store, found.length))
        };
        let (following, preceding) = (
            |end| neighbour(Direction::Forward, end),
            |start| neighbour(Direction::Backward, start),
        );
        assert_eq!(following(510), Some((7, 20)));
        assert_eq!(following(509), None);
        assert_eq!(following(27), None, "a fill follows");
        assert_eq!(preceding(7), Some((510, 10)));
        assert_eq!(preceding(90), None);
        assert_eq!(preceding(500), None);
    }
}
