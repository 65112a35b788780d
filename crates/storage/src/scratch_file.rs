//! A temporary file that nobody else sees, written and read at any offset.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use crate::directory::Directory;
use crate::failure::at;
use crate::ranged_file::{RangedFile, Sharing};
use crate::source::Source;

/// Hidden names derive from this where files without names are not supported.
const NAME: &str = "scratch";

/// A file without a name in a directory, readable only by this user. It vanishes when dropped, and
/// with the process.
///
/// Several threads may read and write at the same time; each read sees whole writes
/// ([`RangedFile`]).
#[derive(Debug)]
pub struct ScratchFile {
    file: RangedFile,
    directory: PathBuf,
}

impl ScratchFile {
    /// Creates an empty file in `directory`.
    ///
    /// # Errors
    /// From the operating system: the directory does not exist, or cannot be written.
    pub fn create(directory: impl AsRef<Path>) -> io::Result<ScratchFile> {
        let path = directory.as_ref();
        let file = Directory::open(path).and_then(|opened| create(&opened));
        let file = file.map_err(at("create a temporary file in", path))?;
        Ok(ScratchFile {
            file: RangedFile::empty(file, Sharing::Ranges),
            directory: path.to_owned(),
        })
    }

    /// Creates an empty file in an open directory, whatever its path is now.
    ///
    /// # Errors
    /// From the operating system: the directory cannot be written.
    pub fn create_in(directory: BorrowedFd<'_>) -> io::Result<ScratchFile> {
        let file = create(&Directory::from_descriptor(directory)?)?;
        Ok(ScratchFile {
            file: RangedFile::empty(file, Sharing::Ranges),
            directory: PathBuf::from("the output directory"),
        })
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// From the operating system, such as [`io::ErrorKind::StorageFull`].
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_at(offset, bytes);
        written.map_err(at("write a temporary file in", &self.directory))
    }

    /// Releases the disk space of a range where the system can. The range then reads as zeros.
    pub fn discard(&self, range: Range<u64>) {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{FallocateFlags, fallocate};
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // If this fails, the file merely remains larger.
            let length_bytes = range.end.saturating_sub(range.start);
            let _ = (self.file).change(range.clone(), |file| {
                fallocate(file, flags, range.start, length_bytes)
            });
        }
        #[cfg(not(target_os = "linux"))]
        let _ = range;
    }

    /// The free space of the file system, without what is reserved for its administrator, in bytes.
    ///
    /// # Errors
    /// From the operating system.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let found = rustix::fs::fstatvfs(self.file.file()).map_err(io::Error::from);
        let found = found.map_err(at("measure the free space of", &self.directory))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

impl Source for ScratchFile {
    fn size_bytes(&self) -> io::Result<u64> {
        let size = self.file.size_bytes();
        size.map_err(at("read a temporary file in", &self.directory))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(offset, buffer);
        read.map_err(at("read a temporary file in", &self.directory))
    }
}

fn create(directory: &Directory) -> io::Result<File> {
    if let Ok(file) = directory.create_unnamed(Mode::RUSR | Mode::WUSR) {
        return Ok(file);
    }
    let (file, hidden) = directory.create_hidden(OsStr::new(NAME))?;
    directory.remove_if_same(&hidden, &file);
    Ok(file)
}

/// Whether files in `directory` take memory instead of disk (tmpfs, ramfs). Also true for a
/// directory that cannot be examined, which is useless for temporary files.
#[cfg(target_os = "linux")]
pub fn is_in_memory(directory: impl AsRef<Path>) -> bool {
    rustix::fs::statfs(directory.as_ref()).map_or(true, |found| is_memory(&found))
}

/// Whether an open file takes memory instead of disk, as far as known.
#[cfg(target_os = "linux")]
pub(crate) fn is_memory_file(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| is_memory(&found))
}

#[cfg(target_os = "linux")]
fn is_memory(found: &rustix::fs::StatFs) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    // The width of the field differs between systems.
    let kind = found.f_type as u64 & u64::from(u32::MAX);
    kind == TMPFS_MAGIC || kind == RAMFS_MAGIC
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_memory_file(_: &File) -> bool {
    false
}

/// Whether files in `directory` take memory instead of disk. Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub fn is_in_memory(directory: impl AsRef<Path>) -> bool {
    !directory.as_ref().is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_written_at_any_offset_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = ScratchFile::create(directory.path()).unwrap();
        scratch.write_at(100_000, b"second").unwrap();
        scratch.write_at(0, b"first").unwrap();
        let mut bytes = [9; 8];
        assert_eq!(scratch.read_at(100_000, &mut bytes).unwrap(), 6);
        assert_eq!(&bytes[..6], b"second");
        assert_eq!(scratch.read_at(0, &mut bytes).unwrap(), 8);
        assert_eq!(&bytes, b"first\0\0\0");
        assert_eq!(scratch.size_bytes().unwrap(), 100_006);
        scratch.discard(0..50_000);
        assert_eq!(scratch.read_at(100_000, &mut bytes).unwrap(), 6);
        assert_eq!(&bytes[..6], b"second");
        assert!(scratch.free_bytes().unwrap() > 0);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_does_not_exist_is_an_error_that_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let error = ScratchFile::create(&missing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let text = error.to_string();
        assert!(text.contains("cannot create a temporary file in"), "{text}");
        assert!(text.contains("missing"), "{text}");
        assert!(is_in_memory(&missing));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn tells_memory_from_disks() {
        assert!(is_in_memory("/dev/shm"));
        assert!(!is_in_memory("/proc"));
    }
}
