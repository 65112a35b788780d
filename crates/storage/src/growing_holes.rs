//! Gives parts of a [`GrowingFile`] back to the file system.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use crate::failure::at;
use crate::growing::GivesBack;
use crate::growing_file::GrowingFile;

/// Only whole blocks of this many bytes are given back, at multiples of it: the block size of
/// common file systems.
pub const HOLE_BYTES: u64 = 4 << 10;

/// The unit in which the system counts what a file takes.
const SECTOR_BYTES: u64 = 512;

/// The whole blocks in a range of a file.
#[must_use]
pub fn whole_blocks(range: &Range<u64>) -> Range<u64> {
    let start = range.start.next_multiple_of(HOLE_BYTES);
    start..(range.end - range.end % HOLE_BYTES).max(start)
}

impl GrowingFile {
    /// Checks that the file system can take parts of this file back. Changes nothing.
    ///
    /// # Errors
    /// `Unsupported` if it cannot.
    pub fn check_holes(&self) -> io::Result<()> {
        let end = self.length()?.next_multiple_of(HOLE_BYTES);
        // Behind the end there is nothing to give back.
        self.punch(end..end + HOLE_BYTES)
    }

    /// Gives a range back, which is [whole blocks](whole_blocks) of what was written before: from
    /// now on it reads as zeros. The length of the file remains. When it is on the disk is known
    /// after [`sync_holes`](Self::sync_holes).
    ///
    /// # Errors
    /// From the operating system.
    pub fn punch(&self, range: Range<u64>) -> io::Result<()> {
        punch(self.file(), range).map_err(at("free space of", self.path()))
    }

    /// Waits until all holes are on the disk.
    ///
    /// # Errors
    /// From the operating system.
    pub fn sync_holes(&self) -> io::Result<()> {
        self.sync()
    }

    /// The bytes that the file takes on the disk.
    ///
    /// # Errors
    /// From the operating system.
    pub fn allocated_bytes(&self) -> io::Result<u64> {
        let metadata = self.file().metadata().map_err(at("read", self.path()))?;
        Ok(metadata.blocks().saturating_mul(SECTOR_BYTES))
    }

    /// How many bytes of a range are no hole.
    ///
    /// # Errors
    /// From the operating system.
    pub fn data_bytes(&self, range: &Range<u64>) -> io::Result<u64> {
        data_bytes(self.file(), range).map_err(at("find the holes of", self.path()))
    }

    fn length(&self) -> io::Result<u64> {
        let metadata = self.file().metadata().map_err(at("read", self.path()))?;
        Ok(metadata.len())
    }
}

impl GivesBack for GrowingFile {
    fn check_holes(&self) -> io::Result<()> {
        GrowingFile::check_holes(self)
    }

    fn data_bytes(&self, range: &Range<u64>) -> io::Result<u64> {
        GrowingFile::data_bytes(self, range)
    }

    fn punch(&mut self, range: Range<u64>) -> io::Result<()> {
        GrowingFile::punch(self, range)
    }

    fn sync_holes(&mut self) -> io::Result<()> {
        GrowingFile::sync_holes(self)
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        GrowingFile::allocated_bytes(self)
    }
}

#[cfg(target_os = "linux")]
fn punch(file: &File, range: Range<u64>) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let length_bytes = range.end.saturating_sub(range.start);
    if length_bytes == 0 {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    loop {
        match fallocate(file, flags, range.start, length_bytes) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                return Err(unsupported());
            }
            punched => return Ok(punched?),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn punch(_file: &File, _range: Range<u64>) -> io::Result<()> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    let text = "the file system cannot take parts of a file back";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

#[cfg(target_os = "linux")]
fn data_bytes(file: &File, range: &Range<u64>) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let (mut at, mut bytes) = (range.start, 0);
    while at < range.end {
        let data = match seek(file, SeekFrom::Data(at)) {
            // Only a hole follows.
            Err(Errno::NXIO) => break,
            found => found?,
        };
        let hole = seek(file, SeekFrom::Hole(data))?;
        bytes += hole.min(range.end).saturating_sub(data.min(range.end));
        at = hole.max(at + 1);
    }
    Ok(bytes)
}

#[cfg(not(target_os = "linux"))]
fn data_bytes(_file: &File, range: &Range<u64>) -> io::Result<u64> {
    Ok(range.end.saturating_sub(range.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole() {
        assert_eq!(whole_blocks(&(0..8192)), 0..8192);
        assert_eq!(whole_blocks(&(1..12_289)), 4096..12_288);
        assert!(whole_blocks(&(4097..8191)).is_empty());
        assert!(whole_blocks(&(5000..5001)).is_empty());
    }

    #[test]
    fn what_is_given_back_reads_as_zeros_and_takes_no_space() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("file");
        std::fs::write(&path, vec![7; 100_000])?;
        let file = GrowingFile::open(&path)?;
        file.check_holes()?;
        assert_eq!(std::fs::read(&path)?, vec![7; 100_000], "nothing changed");
        let range = whole_blocks(&(10_000..90_000));
        assert_eq!(file.data_bytes(&range)?, range.end - range.start);
        file.sync_holes()?;
        let before = file.allocated_bytes()?;
        file.punch(range.clone())?;
        file.punch(5..5)?;
        file.sync_holes()?;
        assert_eq!(file.data_bytes(&range)?, 0);
        assert_eq!(file.data_bytes(&(range.start - 10..range.end + 10))?, 20);
        assert_eq!(before - file.allocated_bytes()?, range.end - range.start);
        let bytes = std::fs::read(&path)?;
        let is_hole = |at: usize| range.contains(&(at as u64));
        assert!((0..100_000).all(|at| bytes[at] == if is_hole(at) { 0 } else { 7 }));
        Ok(())
    }
}
