//! An archive inside, as far as the state of a writer has it.

use std::io;
use std::sync::Arc;

use refrain_format::envelope::state::{STATE_ENDING_BYTES, StatePart};
use refrain_storage::Source;

use crate::error::{Error, Result};

/// A file of state.
pub(super) struct StateFile {
    source: Arc<dyn Source>,
    pub part: StatePart,
    /// Where each piece begins in the file.
    starts: Vec<u64>,
}

impl StateFile {
    /// Reads what is behind the pieces.
    ///
    /// # Errors
    /// `Damaged`, `Limit`, `Io`.
    pub(super) fn open(source: Arc<dyn Source>) -> Result<StateFile> {
        let size_bytes = source.size_bytes()?;
        let read = |bytes: u64| -> Result<Vec<u8>> {
            let start = size_bytes.checked_sub(bytes);
            let start = start.ok_or_else(|| Error::damaged("is no state of a writer"))?;
            let mut ending = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
            let count = source.read_at(start, &mut ending)?;
            ending.truncate(count);
            Ok(ending)
        };
        let ending = read(STATE_ENDING_BYTES as u64)?;
        let ending = ending.first_chunk().copied().unwrap_or_default();
        let part_bytes = StatePart::size_of(&ending)? + STATE_ENDING_BYTES as u64;
        let part = StatePart::parse(&read(part_bytes)?)?;
        let mut starts = Vec::with_capacity(part.pieces.len());
        let (mut start, mut end) = (0_u64, 0);
        for piece in &part.pieces {
            if piece.offset < end {
                return Err(Error::damaged("the pieces of a state are not in order"));
            }
            starts.push(start);
            end = piece.offset.saturating_add(piece.bytes);
            start = start.saturating_add(piece.bytes);
        }
        if start != size_bytes - part_bytes {
            return Err(Error::damaged("the pieces of a state have another size"));
        }
        Ok(StateFile {
            source,
            part,
            starts,
        })
    }

    /// Fills what it has of the bytes from `offset` on.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        let pieces = &self.part.pieces;
        let first = pieces.partition_point(|piece| piece.offset + piece.bytes <= offset);
        for (piece, start) in pieces.iter().zip(&self.starts).skip(first) {
            if piece.offset >= end {
                break;
            }
            let from = piece.offset.max(offset);
            let to = (piece.offset + piece.bytes).min(end);
            let place = (from - offset) as usize..(to - offset) as usize;
            let target = buffer.get_mut(place).unwrap_or_default();
            let count = self.source.read_at(start + (from - piece.offset), target)?;
            if count < target.len() {
                return Err(io::Error::other("a state became shorter"));
            }
        }
        Ok(())
    }
}

/// The archive inside, with zeros for what is not kept: payloads of frames that nothing may read,
/// whose checksums are then wrong.
pub(super) struct Mirror {
    /// In their order in the archive inside, each up to that offset.
    pub files: Vec<StateFile>,
}

impl Source for Mirror {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.files.last().map_or(0, |last| last.part.table.end()))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size_bytes()?.saturating_sub(offset);
        let count = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = buffer.split_at_mut(count).0;
        buffer.fill(0);
        let first = self
            .files
            .partition_point(|file| file.part.table.end() <= offset);
        for file in self.files.iter().skip(first) {
            file.fill(offset, buffer)?;
            if file.part.table.end() >= offset + count as u64 {
                break;
            }
        }
        Ok(count)
    }
}
