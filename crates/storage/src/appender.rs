//! Appends to a regular file: buffers small writes, leaves holes, and can be read while it grows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_pool::trace::{Device, reading, writing};

use crate::failure::{at, refuse};
use crate::pages_behind::PagesBehind;
use crate::read_back::{ReadBack, read_back};
use crate::source::Source;
use crate::transfer::{OFFSET_MAX, in_zero_pieces, read_full, slice_at, write_full};
use crate::written_digests::StreamDigests;

/// Small writes are buffered up to the next multiple of this, so that the file system receives
/// whole, aligned pages wherever frames end.
const BUFFER_BYTES: usize = 128 << 10;

/// An aligned range of this length becomes a hole if it is all zero: the block size of common file
/// systems. Shorter ranges cannot be holes.
const HOLE_BYTES: usize = 4 << 10;

const _: () = assert!(BUFFER_BYTES.is_multiple_of(HOLE_BYTES));

/// The last bytes, which are buffered and not yet in the file.
#[derive(Debug, Default)]
struct Tail {
    offset: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct AppendedFile {
    file: File,
    path: PathBuf,
    tail: Lock<Tail>,
}

/// Uses positioned writes only, never the file's own offset.
#[derive(Debug)]
pub(crate) struct Appender {
    appended: Arc<AppendedFile>,
    /// Whether zeros in the written bytes become holes too.
    sparse: bool,
    /// Digests of what was appended, if it will be read back.
    digests: Option<StreamDigests>,
    behind: Option<PagesBehind>,
}

impl Appender {
    /// `file` must be empty. Errors name it `path`.
    pub(crate) fn new(file: File, path: PathBuf, sparse: bool) -> Self {
        let appended = AppendedFile {
            file,
            path,
            tail: Lock::default(),
        };
        Appender {
            appended: Arc::new(appended),
            sparse,
            digests: None,
            behind: None,
        }
    }

    /// Drops pages of a long file behind the writer, from a cache of `cache_bytes`.
    pub(crate) fn drop_behind(&mut self, cache_bytes: u64) {
        self.behind = Some(PagesBehind::of_output(cache_bytes));
    }

    /// Appends to `file` from `offset` on, which is its length.
    pub(crate) fn behind(file: File, path: PathBuf, offset: u64) -> Self {
        let appender = Appender::new(file, path, false);
        appender.appended.tail.lock().offset = offset;
        appender
    }

    /// Makes [`read_back`](Appender::read_back) possible. Nothing may have been appended yet.
    pub(crate) fn keep_digests(&mut self) {
        self.digests = Some(StreamDigests::default());
    }

    pub(crate) fn file(&self) -> &File {
        &self.appended.file
    }

    pub(crate) fn view(&self) -> Arc<dyn Source> {
        Arc::new(AppendedView {
            appended: Arc::clone(&self.appended),
        })
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(digests) = &mut self.digests {
            digests.write(bytes);
        }
        let mut tail = self.appended.tail.lock();
        self.check_end(&tail, bytes.len() as u64)?;
        let (head, rest) = bytes.split_at(buffer_space(&tail).min(bytes.len()));
        tail.bytes.extend_from_slice(head);
        // The last byte always waits in the buffer: until `finish`, the file is not complete.
        if rest.is_empty() {
            return Ok(());
        }
        self.flush_tail(&mut tail)?;
        let offset = tail.offset;
        // Without the lock, readers of earlier bytes do not wait for the long write.
        drop(tail);
        let (aligned, rest) = rest.split_at((rest.len() - 1) / BUFFER_BYTES * BUFFER_BYTES);
        self.write_data(offset, aligned)?;
        let mut tail = self.appended.tail.lock();
        tail.offset += aligned.len() as u64;
        tail.bytes.extend_from_slice(rest);
        Ok(())
    }

    pub(crate) fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        if length_bytes < HOLE_BYTES as u64 {
            return in_zero_pieces(length_bytes, |piece| self.write_all(piece));
        }
        if let Some(digests) = &mut self.digests {
            digests.skip(length_bytes);
        }
        let mut tail = self.appended.tail.lock();
        self.check_end(&tail, length_bytes)?;
        self.flush_tail(&mut tail)?;
        tail.offset += length_bytes;
        Ok(())
    }

    /// Writes all buffered bytes and sets the final size, which it returns in bytes.
    pub(crate) fn finish(&mut self) -> io::Result<u64> {
        let mut tail = self.appended.tail.lock();
        self.flush_tail(&mut tail)?;
        // A hole at the end exists only through the size.
        let resized = self.appended.file.set_len(tail.offset);
        resized.map_err(at("set the size of", &self.appended.path))?;
        Ok(tail.offset)
    }

    /// Compares the file, which was finished and synced, with what was appended. `None` if it was
    /// not to be checked.
    pub(crate) fn read_back(&mut self) -> io::Result<Option<ReadBack>> {
        let Some(digests) = &mut self.digests else {
            return Ok(None);
        };
        let length_bytes = digests.length_bytes();
        let AppendedFile { file, path, .. } = &*self.appended;
        read_back(file, path, length_bytes, &digests.finish()).map(Some)
    }

    fn check_end(&self, tail: &Tail, added_bytes: u64) -> io::Result<()> {
        let end = tail.end().checked_add(added_bytes);
        if end.is_none_or(|end| end > OFFSET_MAX) {
            let kind = io::ErrorKind::FileTooLarge;
            return Err(refuse("write", &self.appended.path, kind, "too large"));
        }
        Ok(())
    }

    fn flush_tail(&self, tail: &mut Tail) -> io::Result<()> {
        self.write_data(tail.offset, &tail.bytes)?;
        tail.offset += tail.bytes.len() as u64;
        tail.bytes.clear();
        Ok(())
    }

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
        let written = writing(Device::Disk, bytes.len(), || {
            write_full(bytes, |left| {
                let count = self.appended.file.write_at(left, at_offset)?;
                at_offset += count as u64;
                Ok(count)
            })
        });
        written.map_err(at("write", &self.appended.path))?;
        if let Some(behind) = &self.behind {
            behind.passed(&self.appended.file, offset..at_offset);
        }
        Ok(())
    }
}

impl Tail {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

fn buffer_space(tail: &Tail) -> usize {
    // The remainder is below BUFFER_BYTES, so it fits.
    let used_before = (tail.offset % BUFFER_BYTES as u64) as usize;
    BUFFER_BYTES - used_before.min(BUFFER_BYTES) - tail.bytes.len()
}

/// The ranges of `bytes`, which belong at `offset` in the file, that must be written: all except
/// whole aligned blocks of [`HOLE_BYTES`] zeros.
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
    // The first byte decides for most data. The fold has no branches, so that the compiler
    // vectorizes it.
    bytes.first() == Some(&0) && bytes.iter().fold(0, |all, byte| all | byte) == 0
}

/// Reads the appended bytes, from the file or from the buffer.
#[derive(Debug)]
struct AppendedView {
    appended: Arc<AppendedFile>,
}

impl Source for AppendedView {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.appended.tail.lock().end())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (in_file, in_tail) = self.copy_tail(offset, buffer);
        let appended = &self.appended;
        let file_part = &mut buffer[..in_file];
        let read = reading(Device::Disk, || {
            read_full(offset, file_part, |at, part| {
                appended.file.read_at(part, at)
            })
        });
        let read = read.map_err(at("read back", &appended.path))?;
        // While a hole is at its end, the file is shorter than the appended bytes.
        file_part[read..].fill(0);
        Ok(in_file + in_tail)
    }
}

impl AppendedView {
    /// Copies the part of the range from `offset` that is still buffered into `buffer`. Returns the
    /// number of bytes before it, which are in the file, and the number of bytes copied.
    fn copy_tail(&self, offset: u64, buffer: &mut [u8]) -> (usize, usize) {
        let tail = self.appended.tail.lock();
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
