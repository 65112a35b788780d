//! Files and block devices as sources.

use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use refrain_pool::trace::{Device, reading};

use crate::failure::{at, refuse};
use crate::pages_behind::PagesBehind;
use crate::source::Source;
use crate::transfer::{OFFSET_MAX, read_full};

/// The identity and state of a file. Two equal values mean that the file did not change between
/// them, within the precision of the file system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The device of the file system.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
    /// The size in bytes; 0 for devices.
    pub size_bytes: u64,
    /// The time of the last modification of its content.
    pub modified: SystemTime,
    /// The time of the last change of its status, in seconds and nanoseconds: nobody can set it
    /// back.
    pub status_changed: (i64, i64),
    /// The number of its hard links.
    pub links: u64,
}

impl FileIdentity {
    /// The identity of the file at `path`, following links: to detect that output and input are the
    /// same file.
    pub fn from_path(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let metadata = std::fs::metadata(path).map_err(at("get the metadata of", path))?;
        Ok(Self::from_metadata(&metadata))
    }

    /// Whether both are the same file, in any state.
    pub fn is_same_file(&self, other: &FileIdentity) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether the content may differ from the state `before`. Replacing, deleting or linking a
    /// file changes its status time along with the number of its links; that alone does not count.
    pub fn has_changed_since(&self, before: &FileIdentity) -> bool {
        let content = |state: &FileIdentity| (state.size_bytes, state.modified);
        content(self) != content(before)
            || (self.status_changed != before.status_changed && self.links == before.links)
    }

    /// The identity in `metadata`.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        FileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            // Only a broken file system has an invalid time; it must not make files unreadable.
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            status_changed: (metadata.ctime(), metadata.ctime_nsec()),
            links: metadata.nlink(),
        }
    }
}

/// A regular file or block device, read by position.
///
/// The descriptor is private to this source, so seeking for holes affects nobody else. No result
/// depends on the descriptor's offset, so several threads can use it.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
    opened: FileIdentity,
    is_block_device: bool,
    /// False if the system cannot distinguish holes from data, or the descriptor is shared.
    can_seek_holes: AtomicBool,
    behind: Option<PagesBehind>,
}

impl FileSource {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::IsADirectory`] for a directory; [`io::ErrorKind::NotSeekable`] for a pipe,
    /// socket, terminal or other device without offsets (read it as a stream); otherwise from the
    /// operating system.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        // Before opening: opening a named pipe waits for its writer.
        let metadata = std::fs::metadata(path).map_err(at("open", path))?;
        check_kind(&metadata, path)?;
        let file = File::open(path).map_err(at("open", path))?;
        Self::new(file, path, true)
    }

    /// A source over an open file, such as a redirected standard input. Errors name it `name`.
    ///
    /// It starts at the beginning of the file and ignores the offset of the descriptor, which may
    /// be shared with other processes and is never moved. Holes are found only if the system can
    /// open the file again (Linux can, through `/proc`).
    ///
    /// # Errors
    /// As [`FileSource::open`].
    pub fn from_file(file: File, name: impl AsRef<Path>) -> io::Result<Self> {
        match reopen(&file) {
            Some(private) => Self::new(private, name.as_ref(), true),
            None => Self::new(file, name.as_ref(), false),
        }
    }

    fn new(file: File, path: &Path, is_private: bool) -> io::Result<Self> {
        // Again, on the descriptor: by now the path may lead to another file.
        let metadata = file.metadata().map_err(at("open", path))?;
        check_kind(&metadata, path)?;
        let is_block_device = metadata.file_type().is_block_device();
        if is_block_device && !is_private {
            // Its size is found by seeking, which would move the shared offset.
            let kind = io::ErrorKind::NotSeekable;
            return Err(refuse("open", path, kind, "shared block device"));
        }
        Ok(FileSource {
            file,
            path: path.to_owned(),
            opened: FileIdentity::from_metadata(&metadata),
            is_block_device,
            can_seek_holes: AtomicBool::new(is_private && !is_block_device),
            behind: None,
        })
    }

    /// For a file that is read once from front to back: if it is larger than half of `cache_bytes`,
    /// what the page cache may hold, pages that were not there before are dropped behind the
    /// reader.
    #[must_use]
    pub fn passing(mut self, cache_bytes: u64) -> Self {
        if !self.is_block_device {
            let size_bytes = self.opened.size_bytes;
            self.behind = PagesBehind::of_input(&self.file, size_bytes, cache_bytes);
        }
        self
    }

    /// The path that was opened, or the given name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The identity and present state of the file.
    pub fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity::from_metadata(&self.metadata()?))
    }

    /// Permission bits, size, times.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file
            .metadata()
            .map_err(at("get the metadata of", &self.path))
    }
}

impl Source for FileSource {
    fn size_bytes(&self) -> io::Result<u64> {
        if self.is_block_device {
            let end = (&self.file).seek(SeekFrom::End(0));
            return end.map_err(at("find the size of", &self.path));
        }
        Ok(self.metadata()?.size())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        // The system refuses ranges beyond the largest offset.
        let below_max = OFFSET_MAX.saturating_sub(offset);
        let length = usize::try_from(below_max).map_or(buffer.len(), |n| n.min(buffer.len()));
        let within = &mut buffer[..length];
        let read = reading(Device::Disk, || {
            read_full(offset, within, |at, part| self.file.read_at(part, at))
        });
        let count = read.map_err(at("read", &self.path))?;
        if let Some(behind) = &self.behind {
            behind.passed(&self.file, offset..offset + count as u64);
        }
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        let size = self.size_bytes()?;
        if offset >= size {
            return Ok(None);
        }
        if self.can_seek_holes.load(Ordering::Relaxed) {
            match seek_data(&self.file, offset) {
                Ok(None) => return Ok(None),
                // Holds even if the file changes under the search.
                Ok(Some((start, end))) if offset <= start && start < end => {
                    return Ok(Some((start, end)));
                }
                // Not supported, or inconsistent: reporting all as data is always correct.
                Ok(Some(_)) | Err(_) => self.can_seek_holes.store(false, Ordering::Relaxed),
            }
        }
        Ok(Some((offset, size)))
    }

    /// False for a block device, whose times say nothing.
    fn has_changed(&self) -> io::Result<bool> {
        Ok(!self.is_block_device && self.identity()?.has_changed_since(&self.opened))
    }
}

/// The first data range at or after `offset`; `Ok(None)` if only a hole or nothing follows. Moves
/// the descriptor's offset.
#[cfg(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple"))]
pub(crate) fn seek_data(file: &File, offset: u64) -> rustix::io::Result<Option<(u64, u64)>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let start = match seek(file, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error),
    };
    match seek(file, SeekFrom::Hole(start)) {
        Ok(end) => Ok(Some((start, end))),
        Err(Errno::NXIO) => Ok(None), // truncated between the two
        Err(error) => Err(error),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple")))]
pub(crate) fn seek_data(_: &File, _: u64) -> rustix::io::Result<Option<(u64, u64)>> {
    Err(rustix::io::Errno::NOTSUP)
}

fn check_kind(metadata: &Metadata, path: &Path) -> io::Result<()> {
    let (kind, reason) = if metadata.is_file() || metadata.file_type().is_block_device() {
        return Ok(());
    } else if metadata.is_dir() {
        (io::ErrorKind::IsADirectory, "is a directory")
    } else {
        let reason = "is a pipe, socket or device without offsets; it can only be read as a stream";
        (io::ErrorKind::NotSeekable, reason)
    };
    Err(refuse("open", path, kind, reason))
}

/// Opens the same file again, with its own offset.
#[cfg(target_os = "linux")]
pub(crate) fn reopen(file: &File) -> Option<File> {
    use std::os::fd::AsRawFd;
    // Not for pipes and terminals: opening those has side effects.
    let kind = file.metadata().ok()?.file_type();
    (kind.is_file() || kind.is_block_device())
        .then(|| File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok())
        .flatten()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reopen(_file: &File) -> Option<File> {
    None
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
