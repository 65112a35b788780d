//! Sums over the records of a chunk before they are applied: lengths, and the last use of each
//! piece of content.
//!
//! Records are in a separate stream, so they can be read before the literals. A replay in memory
//! then releases a piece as soon as no later match reads it. Of two kernel trees compressed by
//! lrzip, half of the content is needed later, and a quarter at any one time.

use refrain_format::limits::ADDRESS_BYTES_MAX;
use refrain_format::lrzip::{Record, Version};

use super::block_stream::Opener;
use super::chunk_layout::{Chunk, LayoutReader, Tail};
use super::reader_memory::ReaderMemory;
use super::records::ChunkRecords;
use super::replayed_piece::PIECE_BYTES;
use crate::error::{Error, Result};
use crate::options::ReadOptions;

/// Sums over the records of a chunk.
#[derive(Debug, Default)]
pub(super) struct RecordSummary {
    pub content_bytes: u64,
    pub records: u64,
    /// The content bytes of matches that overlap themselves.
    pub run_bytes: u64,
    /// The CRC-32 of the content, if the chunk has one.
    pub crc: Option<u32>,
    pub last_uses: LastUses,
}

/// Reads the records of all chunks from `layout`. `each` receives each chunk, the sums over its
/// records, and the content offset of its start. Returns the length of the content in bytes, and
/// what follows the chunks.
pub(super) fn summarize_chunks(
    mut layout: LayoutReader,
    options: &ReadOptions,
    mut each: impl FnMut(Chunk, RecordSummary, u64),
) -> Result<(u64, Tail)> {
    let opener = layout.opener(ReaderMemory::for_ranges(options).decoders_bytes);
    let version = layout.header().version;
    let mut content_bytes: u64 = 0;
    while let Some(chunk) = layout.next(content_bytes)? {
        let summary = RecordSummary::read(version, &chunk, &opener, 0)
            .map_err(|error| error.at_content(content_bytes))?;
        let after = content_bytes.saturating_add(summary.content_bytes);
        if after > ADDRESS_BYTES_MAX {
            let message = format!("content of more than {ADDRESS_BYTES_MAX} bytes");
            return Err(Error::limit(message));
        }
        each(chunk, summary, content_bytes);
        content_bytes = after;
    }
    Ok((content_bytes, layout.tail(content_bytes)?))
}

/// For each piece of a chunk's content, the end of the last match that reads it.
#[derive(Debug, Default)]
pub(super) struct LastUses {
    /// By piece number; 0 for none.
    ends: Vec<u64>,
    pieces_max: usize,
    /// Whether there are more pieces than recorded.
    is_truncated: bool,
}

impl RecordSummary {
    /// Reads the records of a chunk. The last uses take at most `last_uses_bytes_max` bytes.
    ///
    /// # Errors
    /// `Damaged` if the records do not use exactly the chunk's literals.
    pub(super) fn read(
        version: Version,
        chunk: &Chunk,
        opener: &Opener,
        last_uses_bytes_max: u64,
    ) -> Result<RecordSummary> {
        let mut summary = RecordSummary::default();
        summary.last_uses.pieces_max = (last_uses_bytes_max / size_of::<u64>() as u64) as usize;
        let mut records = ChunkRecords::new(version, chunk);
        let mut literal_bytes = 0;
        loop {
            let record = records.next(opener)?;
            let length = match record {
                Record::End { crc } => {
                    summary.crc = crc;
                    break;
                }
                Record::Literals { length_bytes } => {
                    literal_bytes += length_bytes;
                    length_bytes
                }
                Record::Match {
                    length_bytes,
                    distance_bytes,
                } => {
                    summary.add_match(length_bytes, distance_bytes);
                    length_bytes
                }
            };
            summary.records += 1;
            summary.content_bytes += length;
            if summary.content_bytes > ADDRESS_BYTES_MAX {
                return Err(Error::limit(format!(
                    "a chunk of more than {ADDRESS_BYTES_MAX} bytes"
                )));
            }
        }
        if literal_bytes != chunk.literals_bytes {
            return Err(Error::damaged(format!(
                "the records of a chunk use {literal_bytes} literals, the chunk has {}",
                chunk.literals_bytes
            )));
        }
        Ok(summary)
    }

    fn add_match(&mut self, length_bytes: u64, distance_bytes: u64) {
        if distance_bytes < length_bytes {
            self.run_bytes += length_bytes;
        }
        let end = self.content_bytes + length_bytes;
        // Sources in earlier chunks are not pieces of this chunk.
        let source_end = end.saturating_sub(distance_bytes);
        let source_start = self.content_bytes.saturating_sub(distance_bytes);
        if source_end > source_start {
            self.last_uses.record(
                source_start / PIECE_BYTES,
                (source_end - 1) / PIECE_BYTES,
                end,
            );
        }
    }
}

impl LastUses {
    fn record(&mut self, first_piece: u64, last_piece: u64, end: u64) {
        let Some(count) = usize::try_from(last_piece)
            .ok()
            .and_then(|last| last.checked_add(1))
            .filter(|&count| count <= self.pieces_max)
        else {
            self.is_truncated = true;
            return;
        };
        if self.ends.len() < count {
            self.ends.resize(count, 0);
        }
        // Ends only grow.
        self.ends[first_piece as usize..count].fill(end);
    }

    /// The end of the last match that reads this piece; both count from the start of the chunk.
    pub(super) fn for_piece(&self, piece: u64) -> u64 {
        if self.is_truncated {
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
    fn finds_the_last_use_of_every_piece() {
        let mut summary = RecordSummary::default();
        summary.last_uses.pieces_max = 10;
        summary.content_bytes = 3 * PIECE_BYTES;
        summary.add_match(2, PIECE_BYTES + 1);
        summary.content_bytes = 5 * PIECE_BYTES;
        summary.add_match(10, 6 * PIECE_BYTES);
        summary.add_match(PIECE_BYTES, 5 * PIECE_BYTES);
        summary.add_match(3 * PIECE_BYTES, 1);
        let uses: Vec<u64> = (0..9)
            .map(|piece| summary.last_uses.for_piece(piece))
            .collect();
        let (early, late) = (3 * PIECE_BYTES + 2, 8 * PIECE_BYTES);
        assert_eq!(
            uses,
            [6 * PIECE_BYTES, early, early, 0, late, late, late, late, 0]
        );
        assert_eq!(summary.run_bytes, 3 * PIECE_BYTES);
        // With too many pieces, all count as needed.
        summary.add_match(2, 1);
        summary.content_bytes = 20 * PIECE_BYTES;
        summary.add_match(2, 1);
        assert_eq!(summary.last_uses.for_piece(3), u64::MAX);
    }
}
