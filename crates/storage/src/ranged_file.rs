//! A file that several threads read and write at once without seeing partial writes.
//!
//! Roberson's five questions about files that are read and written at the same time, and what a
//! [`RangedFile`] guarantees all its users in the modes [`Sharing::Ranges`] and `WholeFile`,
//! whatever the file system does:
//!
//! 1. *Do readers wait for readers?* Never. Reads of the same bytes proceed together.
//! 2. *Do readers wait for writers, and writers for readers?* Only if their ranges overlap
//!    (`WholeFile`: always), and then in order of arrival: later reads do not overtake a waiting
//!    writer, and nobody waits forever.
//! 3. *Does a reader see old bytes, new bytes or a mixture?* Of each write, all bytes in the range
//!    of the read, or none. A read that begins after a write has returned sees that write, or later
//!    ones. Short transfers are continued before anyone else gets the range, and the end of the
//!    file is that of a single moment.
//! 4. *Do writers wait for writers?* Only if their ranges overlap, in order of arrival.
//! 5. *What results when two writers write the same range?* One write after the other: where they
//!    overlap, all bytes of the later one; never an interleaving. Appends and
//!    [`RangedFile::read_next`] each get a range to themselves, and reads in order stop before
//!    appends in progress: nothing is overwritten, read twice or skipped.
//!
//! A write that fails leaves a part of its bytes; its error says so, and the range is released. In
//! the mode [`Sharing::Relaxed`] the answers are the file system's (on Linux, most mix), except
//! that appends and reads in order still never overlap. Other processes, and other descriptors of
//! the same file, are not bound by the lock.
//!
//! The lock is [`RangeLock`]; its models run every interleaving of its waits.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use refrain_pool::range_lock::RangeGuard;
use refrain_pool::{Lock, RangeLock, SharedOffset};

use crate::source::Source;
use crate::transfer::{OFFSET_MAX, read_full, write_full};

/// Which users of a file wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// Those whose ranges overlap, except two reads.
    #[default]
    Ranges,
    /// All, except two reads. A read then sees the whole file at one moment.
    WholeFile,
    /// None: for ranges known to be disjoint, or files that are not read while they are written.
    Relaxed,
}

/// Something with bytes at offsets that can be written, such as [`File`]. Transfers may be short.
pub trait Positional {
    /// Reads at an offset; 0 at the end.
    ///
    /// From the operating system.
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at an offset.
    ///
    /// From the operating system.
    fn write_some(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// The end of the last byte.
    ///
    /// From the operating system.
    fn length_bytes(&self) -> io::Result<u64>;
}

impl Positional for File {
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_at(buffer, offset)
    }

    fn write_some(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(bytes, offset)
    }

    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// A file under a [`RangeLock`]. See the [module](self) for what it guarantees.
#[derive(Debug)]
pub struct RangedFile<F = File> {
    file: F,
    sharing: Sharing,
    lock: RangeLock,
    next_read: SharedOffset,
    next_append: SharedOffset,
    /// Where the appends in progress begin.
    appending: Lock<BTreeSet<u64>>,
}

impl<F: Positional> RangedFile<F> {
    /// Appends begin at the end of `file`, reads in order at its start.
    ///
    /// # Errors
    /// If the length of the file cannot be determined.
    pub fn new(file: F, sharing: Sharing) -> io::Result<RangedFile<F>> {
        let end = file.length_bytes()?;
        let ranged = RangedFile::empty(file, sharing);
        ranged.next_append.set(end);
        Ok(ranged)
    }

    /// Takes an empty file, without asking the system for its length.
    pub fn empty(file: F, sharing: Sharing) -> RangedFile<F> {
        RangedFile {
            file,
            sharing,
            lock: RangeLock::new(),
            next_read: SharedOffset::new(0),
            next_append: SharedOffset::new(0),
            appending: Lock::default(),
        }
    }

    /// The file itself, without the lock.
    pub fn file(&self) -> &F {
        &self.file
    }

    /// Fills `buffer` from `offset`; less only at the end of the file. Returns the number of bytes.
    ///
    /// # Errors
    /// From the operating system.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let range = range_of(offset, buffer.len());
        let _range = self.locked(range, RangeLock::read);
        read_full(offset, buffer, |at_offset, part| {
            self.file.read_some(at_offset, part)
        })
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// `InvalidInput` if they would end past the largest offset; otherwise from the operating
    /// system, when part of the bytes may have been written.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        let end = end.filter(|end| *end <= OFFSET_MAX).ok_or_else(|| {
            let count = bytes.len();
            let text = format!("{count} bytes at offset {offset} end past the largest offset");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        let _range = self.locked(offset..end, RangeLock::write);
        let mut at_offset = offset;
        let written = write_full(bytes, |left| {
            let count = self.file.write_some(at_offset, left)?;
            at_offset += count as u64;
            Ok(count)
        });
        written.map_err(|error| partly_written(error, at_offset - offset, bytes.len()))
    }

    /// Reads from where the last call of any thread ended, and returns the range that was read: as
    /// much of `buffer` as the file has now; empty at its end, and before an append in progress.
    /// Each byte is read by one call.
    ///
    /// # Errors
    /// From the operating system; the range then counts as read. `UnexpectedEof` if the file became
    /// shorter during the read.
    pub fn read_next(&self, buffer: &mut [u8]) -> io::Result<Range<u64>> {
        let limit = self.readable_end()?;
        let range = self.next_read.claim_below(limit, buffer.len() as u64);
        let length = (range.end - range.start) as usize; // at most the buffer's
        let part = buffer.get_mut(..length).unwrap_or_default();
        let count = self.read_at(range.start, part)?;
        if count < length {
            let text = format!(
                "the file ends at {} while {range:?} is read",
                range.start + count as u64
            );
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        Ok(range)
    }

    /// Writes after the end of all appends so far, and returns the range. Appends that overlap in
    /// time are written together, each to its own range.
    ///
    /// Until an append returns, [`read_at`](RangedFile::read_at) may find zeros in its range, and
    /// later appends after it.
    ///
    /// # Errors
    /// As [`write_at`](RangedFile::write_at). The range remains, with a part of the bytes.
    pub fn append(&self, bytes: &[u8]) -> io::Result<Range<u64>> {
        if bytes.is_empty() {
            let end = self.next_append.position();
            return Ok(end..end);
        }
        let range = {
            let mut appending = self.appending.lock();
            let claim = self.next_append.claim(bytes.len() as u64);
            let range =
                claim.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            appending.insert(range.start);
            range
        };
        let written = self.write_at(range.start, bytes);
        self.appending.lock().remove(&range.start);
        written.map(|()| range)
    }

    /// The end of what is complete: of the file, or before the first append in progress.
    fn readable_end(&self) -> io::Result<u64> {
        let appending = self.appending.lock();
        let end = self.file.length_bytes()?;
        Ok(appending.first().map_or(end, |first| end.min(*first)))
    }

    /// Runs `change`, which may write any of `range`, as one write: nobody sees part of it.
    pub fn change<R>(&self, range: Range<u64>, change: impl FnOnce(&F) -> R) -> R {
        let _range = self.locked(range, RangeLock::write);
        change(&self.file)
    }

    /// Runs `change`, such as a change of the length, while nobody reads or writes.
    pub fn alone<R>(&self, change: impl FnOnce(&F) -> R) -> R {
        self.change(0..u64::MAX, change)
    }

    fn locked<'a>(
        &'a self,
        range: Range<u64>,
        take: fn(&'a RangeLock, Range<u64>) -> RangeGuard<'a>,
    ) -> Option<RangeGuard<'a>> {
        match self.sharing {
            Sharing::Relaxed => None,
            Sharing::Ranges => Some(take(&self.lock, range)),
            Sharing::WholeFile => Some(take(&self.lock, 0..u64::MAX)),
        }
    }
}

impl<F: Positional + Send + Sync> Source for RangedFile<F> {
    fn size_bytes(&self) -> io::Result<u64> {
        self.file.length_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        RangedFile::read_at(self, offset, buffer)
    }
}

fn range_of(offset: u64, length: usize) -> Range<u64> {
    offset..offset.saturating_add(length as u64)
}

/// Adds the number of written bytes, if any, to the error; keeps its kind.
fn partly_written(error: io::Error, written: u64, wanted: usize) -> io::Error {
    match written {
        0 => error,
        _ => io::Error::new(
            error.kind(),
            format!("{written} of {wanted} bytes were written: {error}"),
        ),
    }
}

#[cfg(test)]
#[path = "ranged_file_tests.rs"]
mod tests;
