//! Digests of what was written to a file, piece by piece, to compare with what a disk returns.
//!
//! XXH3-64 detects accidents, and takes a small part of the time of writing. What no piece covers
//! was not written and must read as zeros.

use std::hash::Hasher;
use std::ops::Range;

use twox_hash::XxHash3_64;

use crate::transfer::in_zero_pieces;

/// Sequential writes are divided into pieces of this length: 24 bytes of memory for each.
const PIECE_BYTES: u64 = 4 << 20;

/// A range of a file and the digest of what was written there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    range: Range<u64>,
    digest: u64,
}

/// The digests of pieces that were written in any order, but none twice.
#[derive(Debug, Clone, Default)]
pub struct WrittenDigests {
    pieces: Vec<Piece>,
}

impl WrittenDigests {
    /// Adds a piece that was written at `offset`.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.pieces.push(Piece {
                range: offset..offset.saturating_add(bytes.len() as u64),
                digest: XxHash3_64::oneshot(bytes),
            });
        }
    }

    /// Adds the pieces of `other`.
    pub fn append(&mut self, mut other: WrittenDigests) {
        self.pieces.append(&mut other.pieces);
    }
}

/// The digests of bytes that are written one after the other.
#[derive(Default)]
pub(crate) struct StreamDigests {
    pieces: Vec<Piece>,
    start: u64,
    end: u64,
    hasher: XxHash3_64,
}

impl StreamDigests {
    /// Adds the next bytes.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = PIECE_BYTES - (self.end - self.start);
            let count = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
            let (now, later) = bytes.split_at(count);
            self.hasher.write(now);
            self.end += count as u64;
            bytes = later;
            if self.end - self.start == PIECE_BYTES {
                self.end_piece();
            }
        }
    }

    /// Skips bytes that are not written, a hole.
    pub(crate) fn skip(&mut self, length_bytes: u64) {
        self.end_piece();
        self.end = self.end.saturating_add(length_bytes);
        self.start = self.end;
    }

    /// The number of bytes so far.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.end
    }

    /// The digests of everything so far.
    pub(crate) fn finish(&mut self) -> WrittenDigests {
        self.end_piece();
        WrittenDigests {
            pieces: std::mem::take(&mut self.pieces),
        }
    }

    fn end_piece(&mut self) {
        if self.start < self.end {
            self.pieces.push(Piece {
                range: self.start..self.end,
                digest: std::mem::take(&mut self.hasher).finish(),
            });
            self.start = self.end;
        }
    }
}

impl std::fmt::Debug for StreamDigests {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("StreamDigests");
        shown.field("end", &self.end).finish_non_exhaustive()
    }
}

/// Compares a file, read from its start to its end, with digests.
pub(crate) struct Comparison {
    /// In order; the next one last.
    pieces: Vec<Piece>,
    position: u64,
    hasher: XxHash3_64,
}

impl Comparison {
    pub(crate) fn new(digests: &WrittenDigests) -> Comparison {
        let mut pieces = digests.pieces.clone();
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.range.start));
        Comparison {
            pieces,
            position: 0,
            hasher: XxHash3_64::default(),
        }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// The range in which something differs.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Range<u64>> {
        while !bytes.is_empty() {
            let (is_written, until) = self.next_border();
            let count = usize::try_from(until - self.position)
                .map_or(bytes.len(), |left| left.min(bytes.len()));
            let (now, later) = bytes.split_at(count);
            let start = self.position;
            self.position += count as u64;
            if is_written {
                self.hasher.write(now);
                self.end_piece()?;
            } else if now.iter().any(|byte| *byte != 0) {
                return Err(start..self.position);
            }
            bytes = later;
        }
        Ok(())
    }

    /// Takes a hole, whose bytes are zero.
    ///
    /// # Errors
    /// As [`Comparison::read`].
    pub(crate) fn hole(&mut self, length_bytes: u64) -> Result<(), Range<u64>> {
        let end = self.position.saturating_add(length_bytes);
        while self.position < end {
            let (is_written, until) = self.next_border();
            let until = until.min(end);
            if is_written {
                in_zero_pieces(until - self.position, |zeros| self.read(zeros))?;
            } else {
                self.position = until;
            }
        }
        Ok(())
    }

    /// Whether the next byte was written, and up to where this is so.
    fn next_border(&self) -> (bool, u64) {
        match self.pieces.last() {
            None => (false, u64::MAX),
            Some(piece) if piece.range.start > self.position => (false, piece.range.start),
            Some(piece) => (true, piece.range.end),
        }
    }

    fn end_piece(&mut self) -> Result<(), Range<u64>> {
        let Some(piece) = self.pieces.pop_if(|piece| piece.range.end == self.position) else {
            return Ok(());
        };
        let found = std::mem::take(&mut self.hasher).finish();
        if found == piece.digest { Ok(()) } else { Err(piece.range) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_and_gaps_are_compared() {
        let mut file = vec![0; 10_000];
        file[1000..1500].fill(3);
        file[1500..2000].fill(4);
        file[9000..].fill(5);
        let mut digests = WrittenDigests::default();
        digests.add(9000, &file[9000..]);
        digests.add(1500, &file[1500..2000]);
        digests.add(1000, &file[1000..1500]);
        digests.add(3000, &[0; 100]);
        let compare = |file: &[u8], step| {
            let mut comparison = Comparison::new(&digests);
            file.chunks(step)
                .try_for_each(|bytes| comparison.read(bytes))
        };
        for step in [1, 700, 1000, 10_000] {
            assert_eq!(compare(&file, step), Ok(()), "{step}");
        }
        for (changed, found) in [(1200, 1000..1500), (1999, 1500..2000), (9999, 9000..10_000)] {
            let mut other = file.clone();
            other[changed] ^= 1;
            assert_eq!(compare(&other, 256), Err(found));
        }
        let mut other = file.clone();
        other[5000] = 1;
        let found = compare(&other, 256).unwrap_err();
        assert!(found.contains(&5000), "{found:?}");
        let mut comparison = Comparison::new(&digests);
        assert_eq!(comparison.hole(1000), Ok(()));
        assert_eq!(comparison.read(&file[1000..2000]), Ok(()));
        assert_eq!(comparison.hole(1 << 60), Err(9000..10_000));
    }

    #[test]
    fn a_stream_has_the_digests_of_its_pieces() {
        let bytes = vec![7; PIECE_BYTES as usize + 5];
        let mut stream = StreamDigests::default();
        for part in bytes.chunks(100_001) {
            stream.write(part);
        }
        stream.skip(1 << 50);
        stream.write(b"end");
        assert_eq!(stream.length_bytes(), bytes.len() as u64 + (1 << 50) + 3);
        let mut expected = WrittenDigests::default();
        let (first, second) = bytes.split_at(PIECE_BYTES as usize);
        expected.add(0, first);
        expected.add(PIECE_BYTES, second);
        expected.add(bytes.len() as u64 + (1 << 50), b"end");
        assert_eq!(stream.finish().pieces, expected.pieces);
    }
}
