//! What the records of a chunk say, before any of them is followed: lengths, and how long each piece of content is needed.
//!
//! Records stand in a stream of their own, so they can be read ahead of the literals. Whoever makes content in memory then knows
//! which pieces no later match reads, and lets these go at once. Of two kernel trees that lrzip packed half the content is needed for
//! a while, and a quarter at any one time.

use refrain_format::limits::ADDRESS_BYTES_MAX;
use refrain_format::lrzip::{Record, Version};

use super::coded::Opener;
use super::layout::Chunk;
use super::piece::PIECE_BYTES;
use super::records::ChunkRecords;
use crate::error::{Error, Result};

/// What the records of a chunk add up to.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub content_bytes: u64,
    pub records: u64,
    /// Content of matches that overlap themselves.
    pub run_bytes: u64,
    pub last_uses: LastUses,
}

/// Where in a chunk's content the last match ends that reads a piece of it.
#[derive(Debug, Default)]
pub(super) struct LastUses {
    /// By number of the piece; 0 for none.
    ends: Vec<u64>,
    pieces_max: usize,
    /// There are more pieces than were looked at.
    is_cut: bool,
}

impl Survey {
    /// Reads the records of a chunk. At most `last_uses_bytes_max` bytes are taken for the pieces' last uses.
    ///
    /// # Errors
    /// `Damaged` when the records do not use just the chunk's literals.
    pub(super) fn of(
        version: Version,
        chunk: &Chunk,
        opener: &Opener,
        last_uses_bytes_max: u64,
    ) -> Result<Survey> {
        let mut survey = Survey::default();
        survey.last_uses.pieces_max = (last_uses_bytes_max / size_of::<u64>() as u64) as usize;
        let mut records = ChunkRecords::new(version, chunk);
        let mut literal_bytes = 0;
        loop {
            let record = records.next(opener)?;
            let length = match record {
                Record::End { .. } => break,
                Record::Literals { length_bytes } => {
                    literal_bytes += length_bytes;
                    length_bytes
                }
                Record::Match {
                    length_bytes,
                    distance_bytes,
                } => {
                    survey.add_match(length_bytes, distance_bytes);
                    length_bytes
                }
            };
            survey.records += 1;
            survey.content_bytes += length;
            if survey.content_bytes > ADDRESS_BYTES_MAX {
                return Err(Error::limit(format!(
                    "a chunk of more than {ADDRESS_BYTES_MAX} bytes"
                )));
            }
        }
        if literal_bytes != chunk.literals_bytes {
            return Err(Error::damaged(format!(
                "the records of a chunk name {literal_bytes} literals, {} are there",
                chunk.literals_bytes
            )));
        }
        Ok(survey)
    }

    fn add_match(&mut self, length_bytes: u64, distance_bytes: u64) {
        if distance_bytes < length_bytes {
            self.run_bytes += length_bytes;
        }
        let end = self.content_bytes + length_bytes;
        // What lies in earlier chunks is none of this chunk's pieces.
        let source_end = end.saturating_sub(distance_bytes);
        let source_start = self.content_bytes.saturating_sub(distance_bytes);
        if source_end > source_start {
            self.last_uses.note(
                source_start / PIECE_BYTES,
                (source_end - 1) / PIECE_BYTES,
                end,
            );
        }
    }
}

impl LastUses {
    fn note(&mut self, first_piece: u64, last_piece: u64, end: u64) {
        let Some(count) = usize::try_from(last_piece)
            .ok()
            .and_then(|last| last.checked_add(1))
            .filter(|&count| count <= self.pieces_max)
        else {
            self.is_cut = true;
            return;
        };
        if self.ends.len() < count {
            self.ends.resize(count, 0);
        }
        // Ends only grow.
        self.ends[first_piece as usize..count].fill(end);
    }

    /// Where the last match ends that reads from this piece; both are counted from the chunk's beginning.
    pub(super) fn of_piece(&self, piece: u64) -> u64 {
        if self.is_cut {
            return u64::MAX;
        }
        let piece = usize::try_from(piece).unwrap_or(usize::MAX);
        self.ends.get(piece).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_use_of_every_piece() {
        let mut survey = Survey::default();
        survey.last_uses.pieces_max = 10;
        survey.content_bytes = 3 * PIECE_BYTES;
        survey.add_match(2, PIECE_BYTES + 1);
        survey.content_bytes = 5 * PIECE_BYTES;
        survey.add_match(10, 6 * PIECE_BYTES);
        survey.add_match(PIECE_BYTES, 5 * PIECE_BYTES);
        survey.add_match(3 * PIECE_BYTES, 1);
        let uses: Vec<u64> = (0..9)
            .map(|piece| survey.last_uses.of_piece(piece))
            .collect();
        let (early, late) = (3 * PIECE_BYTES + 2, 8 * PIECE_BYTES);
        assert_eq!(
            uses,
            [6 * PIECE_BYTES, early, early, 0, late, late, late, late, 0]
        );
        assert_eq!(survey.run_bytes, 3 * PIECE_BYTES);
        // Too many pieces: all count as needed.
        survey.add_match(2, 1);
        survey.content_bytes = 20 * PIECE_BYTES;
        survey.add_match(2, 1);
        assert_eq!(survey.last_uses.of_piece(3), u64::MAX);
    }
}
