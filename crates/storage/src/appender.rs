//! Appends to a regular file, gathers small writes, leaves holes, and can be read meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_pool::Lock;

use crate::failure::{at, refuse};
use crate::source::Source;
use crate::transfer::{OFFSET_MAX, in_zero_pieces, read_full, slice_at, write_full};

/// Small writes gather up to the next multiple of this, so that the file system sees whole,
/// aligned pages however the frames fall.
const GATHER_BYTES: usize = 128 << 10;

/// The piece that becomes a hole when it is all zero: the block of common file systems. Smaller
/// ones cannot be holes anyway.
const HOLE_BYTES: usize = 4 << 10;

const _: () = assert!(GATHER_BYTES.is_multiple_of(HOLE_BYTES));

/// What was written last and is not yet in the file.
#[derive(Debug, Default)]
struct Tail {
    /// Where in the file it belongs: the file holds everything before.
    offset: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    path: PathBuf,
    tail: Lock<Tail>,
}

/// The writing end. Positioned writes only: the file's own offset is never used.
#[derive(Debug)]
pub(crate) struct Appender {
    shared: Arc<Shared>,
    /// Whether zeros among the written bytes become holes too.
    sparse: bool,
}

impl Appender {
    /// Appends to `file`, which is empty; errors call it `path`.
    pub(crate) fn new(file: File, path: PathBuf, sparse: bool) -> Self {
        let shared = Shared {
            file,
            path,
            tail: Lock::default(),
        };
        Appender {
            shared: Arc::new(shared),
            sparse,
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.shared.file
    }

    pub(crate) fn view(&self) -> Arc<dyn Source> {
        Arc::new(View {
            shared: Arc::clone(&self.shared),
        })
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut tail = self.shared.tail.lock();
        self.check_end(&tail, bytes.len() as u64)?;
        let (head, rest) = bytes.split_at(room(&tail).min(bytes.len()));
        tail.bytes.extend_from_slice(head);
        if room(&tail) > 0 {
            return Ok(());
        }
        self.flush_tail(&mut tail)?;
        let offset = tail.offset;
        // Readers of what is already there need not wait for the long write.
        drop(tail);
        let (aligned, rest) = rest.split_at(rest.len() - rest.len() % GATHER_BYTES);
        self.write_data(offset, aligned)?;
        let mut tail = self.shared.tail.lock();
        tail.offset += aligned.len() as u64;
        tail.bytes.extend_from_slice(rest);
        Ok(())
    }

    pub(crate) fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        if length_bytes < HOLE_BYTES as u64 {
            return in_zero_pieces(length_bytes, |piece| self.write_all(piece));
        }
        let mut tail = self.shared.tail.lock();
        self.check_end(&tail, length_bytes)?;
        self.flush_tail(&mut tail)?;
        tail.offset += length_bytes;
        Ok(())
    }

    /// Puts everything into the file and sets its final size. Returns that size in bytes.
    pub(crate) fn finish(&mut self) -> io::Result<u64> {
        let mut tail = self.shared.tail.lock();
        self.flush_tail(&mut tail)?;
        // A hole at the end is only a size.
        let resized = self.shared.file.set_len(tail.offset);
        resized.map_err(at("set the size of", &self.shared.path))?;
        Ok(tail.offset)
    }

    fn check_end(&self, tail: &Tail, added_bytes: u64) -> io::Result<()> {
        let end = tail.end().checked_add(added_bytes);
        if end.is_none_or(|end| end > OFFSET_MAX) {
            let kind = io::ErrorKind::FileTooLarge;
            return Err(refuse("write", &self.shared.path, kind, "too large"));
        }
        Ok(())
    }

    fn flush_tail(&self, tail: &mut Tail) -> io::Result<()> {
        self.write_data(tail.offset, &tail.bytes)?;
        tail.offset += tail.bytes.len() as u64;
        tail.bytes.clear();
        Ok(())
    }

    /// Writes `bytes` at `offset`, without the pieces that can be holes.
    fn write_data(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if !self.sparse {
            return self.write_at(offset, bytes);
        }
        let mut done = 0;
        for (start, end) in data_ranges(offset, bytes) {
            self.write_at(offset + start as u64, &bytes[start..end])?;
            done = end;
        }
        debug_assert!(bytes[done..].iter().all(|byte| *byte == 0));
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut at_offset = offset;
        let written = write_full(bytes, |left| {
            let count = self.shared.file.write_at(left, at_offset)?;
            at_offset += count as u64;
            Ok(count)
        });
        written.map_err(at("write", &self.shared.path))
    }
}

impl Tail {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// Bytes that can be gathered before the end reaches the next multiple of [`GATHER_BYTES`].
fn room(tail: &Tail) -> usize {
    // The remainder is below GATHER_BYTES, so it fits.
    let used_before = (tail.offset % GATHER_BYTES as u64) as usize;
    GATHER_BYTES - used_before.min(GATHER_BYTES) - tail.bytes.len()
}

/// The ranges of `bytes` (which go to `offset` in the file) that have to be written: all but whole
/// aligned pieces of [`HOLE_BYTES`] zeros.
fn data_ranges(offset: u64, bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let until_aligned = HOLE_BYTES - ((offset + start as u64) % HOLE_BYTES as u64) as usize;
        let end = (start + until_aligned).min(bytes.len());
        let is_hole = end - start == HOLE_BYTES && is_zero(&bytes[start..end]);
        if !is_hole {
            match ranges.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => ranges.push((start, end)),
            }
        }
        start = end;
    }
    ranges
}

fn is_zero(bytes: &[u8]) -> bool {
    // Almost all data fails here at once; the fold over the rest has no branches, so that the
    // compiler makes it wide.
    bytes.first() == Some(&0) && bytes.iter().fold(0, |all, byte| all | byte) == 0
}

/// Reads what was appended, in the file or still gathered.
#[derive(Debug)]
struct View {
    shared: Arc<Shared>,
}

impl Source for View {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.shared.tail.lock().end())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (in_file, in_tail) = self.copy_tail(offset, buffer);
        let shared = &self.shared;
        let file_part = &mut buffer[..in_file];
        let read = read_full(offset, file_part, |at, part| shared.file.read_at(part, at));
        let read = read.map_err(at("read back", &shared.path))?;
        // The file is shorter than what was appended while a hole is at its end.
        file_part[read..].fill(0);
        Ok(in_file + in_tail)
    }
}

impl View {
    /// Copies the part of `offset..` that is still gathered to its place in `buffer`. Returns how
    /// many bytes before it come from the file, and how many were copied.
    fn copy_tail(&self, offset: u64, buffer: &mut [u8]) -> (usize, usize) {
        let tail = self.shared.tail.lock();
        let before_tail = tail.offset.saturating_sub(offset);
        let in_file = usize::try_from(before_tail).map_or(buffer.len(), |n| n.min(buffer.len()));
        let offset_in_tail = offset.saturating_sub(tail.offset);
        let piece = slice_at(&tail.bytes, offset_in_tail, buffer.len() - in_file);
        buffer[in_file..in_file + piece.len()].copy_from_slice(piece);
        (in_file, piece.len())
    }
}

#[cfg(test)]
#[path = "appender_tests.rs"]
mod tests;
