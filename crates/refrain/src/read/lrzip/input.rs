//! Reads an archive at offsets, from a file, or from a pipe whose history is retained as needed.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_storage::Source;

use crate::error::{Error, Result, mebibytes};
use crate::store::exact_read::read_full;

/// The number of bytes that are read from a pipe at a time.
const PIECE_BYTES: usize = 256 << 10;

/// The origin of the archive's bytes.
enum Origin {
    File(Arc<dyn Source>, u64),
    Pipe(Lock<Spool>),
}

/// The history of a pipe.
struct Spool {
    stream: Box<dyn Read + Send>,
    /// The retained pieces, of [`PIECE_BYTES`] each except for the last one of the pipe.
    pieces: VecDeque<Vec<u8>>,
    /// The archive offset of the first one.
    start: u64,
    end: u64,
    has_ended: bool,
    bytes_max: u64,
    /// Bytes before this offset may be evicted.
    floor: u64,
}

/// An archive's bytes.
pub(crate) struct ArchiveInput {
    origin: Origin,
}

impl ArchiveInput {
    /// Reads from a file.
    pub(crate) fn from_source(source: Arc<dyn Source>) -> Result<ArchiveInput> {
        let size_bytes = source.size_bytes()?;
        Ok(ArchiveInput {
            origin: Origin::File(source, size_bytes),
        })
    }

    /// Reads from a pipe, of which at most `bytes_max` bytes are retained.
    pub(crate) fn from_stream(stream: Box<dyn Read + Send>, bytes_max: u64) -> ArchiveInput {
        ArchiveInput {
            origin: Origin::Pipe(Lock::new(Spool {
                stream,
                pieces: VecDeque::new(),
                start: 0,
                end: 0,
                has_ended: false,
                bytes_max,
                floor: 0,
            })),
        }
    }

    /// Reads from `offset` until `buffer` is full or the archive ends.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match &self.origin {
            Origin::File(source, _) => Ok(source.read_at(offset, buffer)?),
            Origin::Pipe(spool) => spool.lock().read_at(offset, buffer),
        }
    }

    /// Reads exactly `length` bytes from `offset`; errors name them `what`.
    pub(crate) fn exact(&self, what: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        let bytes = self.up_to(offset, length)?;
        if bytes.len() < length {
            let message = format!("the archive ends inside {what}");
            return Err(Error::damaged(message).at_offset(offset));
        }
        Ok(bytes)
    }

    /// Reads up to `length` bytes from `offset`; fewer only at the end of the archive.
    pub(crate) fn up_to(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let count = self.read_at(offset, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Refuses a range beyond the end of a file, before memory is allocated for it. The end of a
    /// pipe is unknown.
    pub(crate) fn check_range(&self, what: &str, offset: u64, length: u64) -> Result<()> {
        match self.origin {
            Origin::File(_, size) if offset.checked_add(length).is_none_or(|end| end > size) => {
                let message = format!(
                    "the archive ends inside {what}: it needs {length} bytes, the file has {}",
                    size.saturating_sub(offset)
                );
                Err(Error::damaged(message).at_offset(offset))
            }
            _ => Ok(()),
        }
    }

    /// Permits the release of bytes before `offset` when memory is needed.
    pub(crate) fn release_before(&self, offset: u64) {
        if let Origin::Pipe(spool) = &self.origin {
            let mut spool = spool.lock();
            spool.floor = spool.floor.max(offset);
        }
    }

    /// Whether all of the archive can be read at any time.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.origin, Origin::File(..))
    }

    /// The memory of a pipe's history, in bytes.
    pub(crate) fn spooled_bytes(&self) -> u64 {
        match &self.origin {
            Origin::File(..) => 0,
            Origin::Pipe(spool) => spool.lock().memory_bytes(),
        }
    }

    /// The number of bytes after `offset`. Reads the rest of a pipe.
    pub(crate) fn bytes_after(&self, offset: u64) -> Result<u64> {
        match &self.origin {
            Origin::File(_, size) => Ok(size.saturating_sub(offset)),
            Origin::Pipe(spool) => {
                let mut spool = spool.lock();
                spool.floor = u64::MAX;
                while spool.pull()? {}
                Ok(spool.end.saturating_sub(offset))
            }
        }
    }
}

impl Spool {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if offset < self.start {
            return Err(Error::limit(format!(
                "this archive refers to bytes further back than the {} that remain in memory: raise the memory limit, or \
                 read it from a file",
                mebibytes(self.bytes_max)
            ))
            .at_offset(offset));
        }
        let end = offset.saturating_add(buffer.len() as u64);
        while self.end < end && self.pull()? {}
        let mut done = 0;
        while done < buffer.len() {
            let Some(inside) = (offset + done as u64).checked_sub(self.start) else {
                break;
            };
            let (piece, at) = (inside / PIECE_BYTES as u64, inside % PIECE_BYTES as u64);
            let piece = usize::try_from(piece)
                .ok()
                .and_then(|piece| self.pieces.get(piece));
            let Some(rest) = piece.and_then(|piece| piece.get(at as usize..)) else {
                break;
            };
            let count = rest.len().min(buffer.len() - done);
            if count == 0 {
                break;
            }
            buffer[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
        }
        Ok(done)
    }

    /// Reads one more piece. Returns false at the end.
    fn pull(&mut self) -> Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        let mut piece = match self.pieces.front() {
            Some(_) if self.start + PIECE_BYTES as u64 <= self.floor && self.is_full() => {
                self.start += PIECE_BYTES as u64;
                self.pieces.pop_front().unwrap_or_default()
            }
            Some(_) if self.is_full() => {
                return Err(Error::limit(format!(
                    "from a pipe, more than {} of this archive must remain in memory: raise the memory limit, or read it \
                     from a file",
                    mebibytes(self.bytes_max)
                )));
            }
            _ => Vec::new(),
        };
        piece.resize(PIECE_BYTES, 0);
        let count = read_full(&mut *self.stream, &mut piece)?;
        self.has_ended = count < PIECE_BYTES;
        piece.truncate(count);
        self.end += count as u64;
        self.pieces.push_back(piece);
        Ok(count > 0)
    }

    fn memory_bytes(&self) -> u64 {
        (self.pieces.len() * PIECE_BYTES) as u64
    }

    fn is_full(&self) -> bool {
        self.memory_bytes() + PIECE_BYTES as u64 > self.bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn bytes() -> Vec<u8> {
        (0..3 * PIECE_BYTES as u32 + 99)
            .map(|at| (at.wrapping_mul(at) >> 7) as u8)
            .collect()
    }

    #[test]
    fn a_pipe_is_read_at_any_offset() {
        let bytes = bytes();
        let input = ArchiveInput::from_stream(Box::new(Cursor::new(bytes.clone())), 1 << 30);
        for offset in [
            0,
            PIECE_BYTES - 5,
            5,
            3 * PIECE_BYTES,
            bytes.len(),
            bytes.len() + 7,
        ] {
            for length in [0, 1, 10, PIECE_BYTES + 10] {
                let expected = &bytes[offset.min(bytes.len())..(offset + length).min(bytes.len())];
                assert!(
                    input.up_to(offset as u64, length).unwrap() == expected,
                    "{offset} {length}"
                );
            }
        }
        assert_eq!(input.bytes_after(100).unwrap(), bytes.len() as u64 - 100);
    }

    #[test]
    fn only_released_bytes_are_evicted() {
        let bytes = bytes();
        let room = 2 * PIECE_BYTES as u64;
        let input = ArchiveInput::from_stream(Box::new(Cursor::new(bytes.clone())), room);
        assert!(
            input.up_to(2 * PIECE_BYTES as u64, 1).is_err(),
            "nothing is released"
        );
        input.release_before(PIECE_BYTES as u64);
        assert!(input.up_to(2 * PIECE_BYTES as u64, 1).unwrap() == bytes[2 * PIECE_BYTES..][..1]);
        assert!(input.up_to(0, 1).is_err(), "it was evicted");
        assert!(input.up_to(PIECE_BYTES as u64, 1).is_ok());
    }
}
