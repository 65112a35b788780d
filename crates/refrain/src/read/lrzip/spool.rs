//! The history of a pipe, at offsets: in memory, and beyond a limit in temporary space.
//!
//! A chunk is decoded from records that refer to all of it, so all of it must be available. It is
//! kept in memory up to a limit. Beyond that the oldest bytes move to temporary space, if the
//! caller provides some.

use std::collections::VecDeque;
use std::io::Read;
use std::path::PathBuf;

use refrain_storage::{ScratchFile, Source};

use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::store::exact_read::read_full;

/// How many bytes are read from a pipe at a time.
const PIECE_BYTES: usize = 256 << 10;

/// The history of a pipe.
pub(super) struct Spool {
    stream: Box<dyn Read + Send>,
    /// The retained pieces, of [`PIECE_BYTES`] each except the last one of the pipe.
    pieces: VecDeque<Vec<u8>>,
    /// The archive offset of the first one.
    start: u64,
    end: u64,
    has_ended: bool,
    bytes_max: u64,
    /// Bytes before this offset may be evicted.
    floor: u64,
    /// The directory of a temporary file.
    temporary: Option<PathBuf>,
    moved: Option<MovedBytes>,
}

/// Bytes in temporary space. They end at the first byte in memory.
struct MovedBytes {
    file: ScratchFile,
    /// The archive offset of the first byte.
    start: u64,
}

impl Spool {
    /// Starts at the first byte of a pipe.
    pub(super) fn new(
        stream: Box<dyn Read + Send>,
        bytes_max: u64,
        temporary: Option<PathBuf>,
    ) -> Spool {
        Spool {
            stream,
            pieces: VecDeque::new(),
            start: 0,
            end: 0,
            has_ended: false,
            bytes_max,
            floor: 0,
            temporary,
            moved: None,
        }
    }

    /// Permits releasing bytes before `offset`.
    pub(super) fn release_before(&mut self, offset: u64) {
        self.floor = self.floor.max(offset);
        if self.floor >= self.start {
            self.moved = None;
        }
    }

    /// Reads the rest of the pipe without keeping it, only to count it: reads of it find nothing.
    /// What was read before stays, because the last chunks may still be decoded from it. Returns
    /// the number of all bytes.
    pub(super) fn read_to_end(&mut self) -> Result<u64> {
        let mut piece = if self.has_ended { Vec::new() } else { vec![0; PIECE_BYTES] };
        while !self.has_ended {
            let count = read_full(&mut *self.stream, &mut piece)?;
            self.has_ended = count < PIECE_BYTES;
            self.end += count as u64;
        }
        Ok(self.end)
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.pieces.len() * PIECE_BYTES) as u64
    }

    /// Reads at `offset` until `buffer` is full or the pipe ends.
    pub(super) fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let end = offset.saturating_add(buffer.len() as u64);
        while self.end < end && self.pull()? {}
        let before = self.start.saturating_sub(offset);
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        let (moved, recent) = buffer.split_at_mut(before.min(buffer.len()));
        self.read_moved(offset, moved)?;
        Ok(moved.len() + self.read_recent(offset + moved.len() as u64, recent))
    }

    /// Reads bytes that are no longer in memory.
    fn read_moved(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let moved = self.moved.as_ref();
        let place = moved.and_then(|moved| Some((moved, offset.checked_sub(moved.start)?)));
        let Some((moved, inside)) = place else {
            return Err(Error::limit(format!(
                "this archive refers to bytes further back than the {} that remain in memory: raise the memory limit, or \
                 read it from a file",
                mebibytes(self.bytes_max)
            ))
            .at_offset(offset));
        };
        if moved.file.read_at(inside, buffer)? == buffer.len() {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::Io,
                "the temporary file has become shorter",
            ))
        }
    }

    /// Reads bytes that are in memory.
    fn read_recent(&self, offset: u64, buffer: &mut [u8]) -> usize {
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
        done
    }

    /// Reads one more piece. Returns false at the end.
    fn pull(&mut self) -> Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        let mut piece = if self.is_full() { self.evict()? } else { Vec::new() };
        piece.resize(PIECE_BYTES, 0);
        let count = read_full(&mut *self.stream, &mut piece)?;
        self.has_ended = count < PIECE_BYTES;
        piece.truncate(count);
        self.end += count as u64;
        self.pieces.push_back(piece);
        Ok(count > 0)
    }

    /// Takes the oldest piece out of memory. If it may be needed, moves it to temporary space.
    fn evict(&mut self) -> Result<Vec<u8>> {
        let Some(oldest) = self.pieces.pop_front() else {
            return Ok(Vec::new());
        };
        let end = self.start + oldest.len() as u64;
        if end > self.floor {
            let moved = match &mut self.moved {
                Some(moved) => moved,
                none => {
                    let Some(temporary) = &self.temporary else {
                        let message = format!(
                            "from a pipe, more than {} of this archive must remain in memory: raise the memory limit, name a directory for temporary \
                             content, or read it from a file",
                            mebibytes(self.bytes_max)
                        );
                        self.pieces.push_front(oldest);
                        return Err(Error::limit(message));
                    };
                    none.insert(MovedBytes {
                        file: ScratchFile::create(temporary)?,
                        start: self.start,
                    })
                }
            };
            (moved.file).write_at(self.start - moved.start, &oldest)?;
        }
        self.start = end;
        Ok(oldest)
    }

    fn is_full(&self) -> bool {
        self.memory_bytes() + PIECE_BYTES as u64 > self.bytes_max
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::input::ArchiveInput;
    use super::*;

    fn bytes() -> Vec<u8> {
        (0..3 * PIECE_BYTES as u32 + 99)
            .map(|at| (at.wrapping_mul(at) >> 7) as u8)
            .collect()
    }

    #[test]
    fn a_pipe_is_read_at_any_offset() {
        let bytes = bytes();
        let input = ArchiveInput::from_stream(Box::new(Cursor::new(bytes.clone())), 1 << 30, None);
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

    /// Chunks before the end of an archive are still decoded when what follows it is counted.
    #[test]
    fn counting_the_rest_leaves_what_was_read() {
        let bytes = bytes();
        let directory = tempfile::tempdir().unwrap();
        let room = PIECE_BYTES as u64;
        let stream = Box::new(Cursor::new(bytes.clone()));
        let input = ArchiveInput::from_stream(stream, room, Some(directory.path().to_owned()));
        let read = 2 * PIECE_BYTES - 7;
        assert!(input.up_to(0, read).unwrap() == bytes[..read]);
        assert_eq!(input.bytes_after(0).unwrap(), bytes.len() as u64);
        assert!(input.up_to(0, read).unwrap() == bytes[..read]);
        assert!(input.spooled_bytes() <= room);
    }

    #[test]
    fn only_released_bytes_are_evicted() {
        let bytes = bytes();
        let room = 2 * PIECE_BYTES as u64;
        let input = ArchiveInput::from_stream(Box::new(Cursor::new(bytes.clone())), room, None);
        assert!(
            input.up_to(2 * PIECE_BYTES as u64, 1).is_err(),
            "nothing is released"
        );
        input.release_before(PIECE_BYTES as u64);
        assert!(input.up_to(2 * PIECE_BYTES as u64, 1).unwrap() == bytes[2 * PIECE_BYTES..][..1]);
        assert!(input.up_to(0, 1).is_err(), "it was evicted");
        assert!(input.up_to(PIECE_BYTES as u64, 1).is_ok());
    }

    #[test]
    fn bytes_beyond_the_limit_move_to_temporary_space() {
        let bytes = bytes();
        let directory = tempfile::tempdir().unwrap();
        let temporary = directory.path().to_owned();
        let room = 2 * PIECE_BYTES as u64;
        let stream = Box::new(Cursor::new(bytes.clone()));
        let input = ArchiveInput::from_stream(stream, room, Some(temporary));
        let last = bytes.len() as u64 - 3;
        assert!(input.up_to(last, 10).unwrap() == bytes[last as usize..]);
        assert!(input.spooled_bytes() <= room);
        for offset in [0, 5, PIECE_BYTES - 9, 2 * PIECE_BYTES - 1] {
            for length in [1, 20, PIECE_BYTES, 2 * PIECE_BYTES, bytes.len()] {
                let end = bytes.len().min(offset + length);
                let found = input.up_to(offset as u64, length).unwrap();
                assert!(found == bytes[offset..end], "{length} from {offset}");
            }
        }
        input.release_before(last);
        assert!(input.up_to(0, 1).is_err(), "it was released");
        assert!(input.up_to(last, 3).is_ok());
    }

    #[test]
    fn temporary_space_is_used_only_where_needed() {
        let bytes = bytes();
        let temporary = PathBuf::from("/a directory that does not exist");
        let room = 2 * PIECE_BYTES as u64;
        let stream = Box::new(Cursor::new(bytes.clone()));
        let input = ArchiveInput::from_stream(stream, room, Some(temporary));
        for offset in (0..bytes.len()).step_by(PIECE_BYTES / 2) {
            input.release_before(offset as u64);
            assert!(input.up_to(offset as u64, 1).unwrap() == bytes[offset..][..1]);
        }
    }
}
