//! Opens files below a root for reading, by their relative paths.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_pool::trace::{Device, reading};
use refrain_storage::open_at;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::attributes::{AttributesOf, read_attributes};
use super::data_ranges::find_data_ranges;
use super::directories::DIRECTORY_FLAGS;
use super::metadata::Metadata;
use super::owners::OwnerNames;
use refrain_entries::Entry;

/// Longer paths are opened in pieces. (Linux allows 4,095 bytes.)
const PIECE_BYTES_MAX: usize = 2048;

const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A file up to this size without blocks on disk may have more content than its size says.
const UNKNOWN_SIZE_BYTES_MAX: u64 = 4096;

/// A directory whose files are opened by their relative paths, by several threads if needed.
///
/// Symbolic links below it are not followed, so nobody can redirect a reader by replacing a
/// directory by a link.
#[derive(Debug)]
pub struct FileRoot {
    root: OwnedFd,
    /// Whether files may be opened without changing their access time. Only their owner and root
    /// may; after a refusal this is not tried again.
    may_keep_access_time: AtomicBool,
    /// Whether the kernel can resolve a path without links (`openat2`, Linux 5.6).
    resolves_without_links: AtomicBool,
}

impl FileRoot {
    /// Opens a directory. Its path may lead through links.
    ///
    /// # Errors
    ///
    /// If `path` is not a directory that can be opened.
    pub fn open(path: &Path) -> io::Result<FileRoot> {
        let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
        Ok(FileRoot {
            root: rustix::fs::open(path, flags, Mode::empty())?,
            may_keep_access_time: AtomicBool::new(cfg!(target_os = "linux")),
            resolves_without_links: AtomicBool::new(cfg!(target_os = "linux")),
        })
    }

    /// Opens a regular file for reading. The path may be longer than the system's limit. A FIFO or
    /// device of that name does not block.
    ///
    /// # Errors
    ///
    /// From the operating system: `NotFound` if it does not exist, an error for a symbolic link in
    /// the path; `InvalidInput` if it is not a regular file.
    /// [`Problem::from_error`](super::Problem::from_error) classifies it.
    pub fn open_file(&self, relative: &[u8]) -> io::Result<OpenedFile> {
        let (parent, path) = self.parent_of_last_piece(relative)?;
        let at = parent.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        let file = self.open_keeping_access_time(at, path)?;
        let opened = Metadata::from_stat(&rustix::fs::fstat(&file)?);
        if opened.file_type != FileType::RegularFile {
            let text = "is no longer a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(OpenedFile { file, opened })
    }

    /// Resolves paths as on systems without `openat2`.
    #[cfg(test)]
    pub(crate) fn resolve_stepwise_only(&self) {
        self.resolves_without_links.store(false, Ordering::Relaxed);
    }

    /// Opens the directories of a long path. Returns the last, and the rest of the path.
    fn parent_of_last_piece<'a>(&self, path: &'a [u8]) -> io::Result<(Option<OwnedFd>, &'a [u8])> {
        let mut parent: Option<OwnedFd> = None;
        let mut rest = path;
        while rest.len() > PIECE_BYTES_MAX {
            let piece = rest.get(..PIECE_BYTES_MAX).unwrap_or_default();
            let Some(end) = piece.iter().rposition(|byte| *byte == b'/') else {
                return Err(Errno::NAMETOOLONG.into());
            };
            let at = parent.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            let piece = piece.get(..end).unwrap_or_default();
            parent = Some(self.resolve(at, piece, DIRECTORY_FLAGS)?);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Ok((parent, rest))
    }

    fn open_keeping_access_time(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
    ) -> rustix::io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        if self.may_keep_access_time.load(Ordering::Relaxed) {
            match self.resolve(at, path, FILE_FLAGS | OFlags::NOATIME) {
                Err(Errno::PERM) => self.may_keep_access_time.store(false, Ordering::Relaxed),
                result => return result,
            }
        }
        self.resolve(at, path, FILE_FLAGS)
    }

    fn resolve(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        flags: OFlags,
    ) -> rustix::io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        if self.resolves_without_links.load(Ordering::Relaxed) {
            use rustix::fs::ResolveFlags;
            let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
            match rustix::fs::openat2(at, path, flags, Mode::empty(), resolve) {
                // An old kernel.
                Err(Errno::NOSYS) => self.resolves_without_links.store(false, Ordering::Relaxed),
                // A sandbox that does not know the call, or the file itself: the next call will
                // tell.
                Err(Errno::PERM) if !flags.contains(OFlags::NOATIME) => {}
                // A concurrent rename made the answer uncertain, or a signal interrupted the call.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
        resolve_stepwise(at, path, flags)
    }
}

fn resolve_stepwise(at: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mut names = path.split(|byte| *byte == b'/').peekable();
    let mut directory: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        let flags = match names.peek() {
            Some(_) => DIRECTORY_FLAGS,
            None => flags,
        };
        let parent = directory.as_ref().map_or(at, AsFd::as_fd);
        directory = Some(open_at(parent, name, flags, Mode::empty())?);
    }
    directory.ok_or(Errno::NOENT)
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    file: OwnedFd,
    opened: Metadata,
}

impl OpenedFile {
    /// The size when it was opened.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.opened.size_bytes
    }

    /// Whether the size does not tell how much can be read: files in `/proc` have size 0, files in
    /// `/sys` 4096. Read such a file until its end. (Some small or empty files of other file
    /// systems look the same, for which this does no harm.)
    #[must_use]
    pub fn is_of_unknown_size(&self) -> bool {
        self.opened.allocated_bytes == 0 && self.opened.size_bytes <= UNKNOWN_SIZE_BYTES_MAX
    }

    /// Reads at an offset. Returns the number of bytes read; 0 at the end.
    ///
    /// # Errors
    ///
    /// From the operating system.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        reading(Device::Disk, || {
            loop {
                match rustix::io::pread(&self.file, &mut *buffer, offset) {
                    Err(Errno::INTR) => {}
                    result => return Ok(result?),
                }
            }
        })
    }

    /// The data ranges of a sparse file, in ascending order; the rest are holes. `None` if all is
    /// data. Gaps shorter than 4 KiB count as data, and so does the shorter half of the gaps in a
    /// file with more than 65,536 ranges.
    ///
    /// # Errors
    ///
    /// From the operating system.
    pub fn data_ranges(&self) -> io::Result<Option<Vec<Range<u64>>>> {
        let is_dense = self.opened.allocated_bytes >= self.opened.size_bytes;
        if is_dense || self.is_of_unknown_size() {
            return Ok(None);
        }
        find_data_ranges(self.file.as_fd(), self.opened.size_bytes)
    }

    /// Sets mode, owner, time, size and attributes of an entry to those of the open file, so that
    /// they belong to the data that is read.
    ///
    /// # Errors
    ///
    /// If an extended attribute cannot be read; the rest is set.
    pub fn refresh(&self, entry: &mut Entry) -> io::Result<()> {
        let opened = &self.opened;
        entry.mode = opened.mode;
        entry.modified = opened.modified;
        entry.size_bytes = opened.size_bytes;
        if entry.change_stamp != 0 {
            entry.change_stamp = opened.change_stamp();
        }
        let owner = &entry.owner;
        if owner.uid != u64::from(opened.uid) || owner.gid != u64::from(opened.gid) {
            // Rare: it changed since the directory was listed.
            let names = OwnerNames::from_system();
            entry.owner = Arc::new(names.owner(opened.uid, opened.gid));
        }
        match read_attributes(AttributesOf::Open(self.file.as_fd())) {
            Ok(attributes) => entry.attributes = attributes,
            Err((name, error)) => {
                let name = String::from_utf8_lossy(&name);
                let text = format!("attribute {name}: {error}");
                return Err(io::Error::new(io::Error::from(error).kind(), text));
            }
        }
        Ok(())
    }

    /// Whether the file changed since it was opened, as far as the file system tells.
    ///
    /// # Errors
    ///
    /// From the operating system.
    pub fn has_changed(&self) -> io::Result<bool> {
        Ok(self.changed_to()?.is_some())
    }

    /// The present size, if the file changed since it was opened: its size, its modification time,
    /// or its status time. Replacing, deleting or linking a file changes its status time along with
    /// the number of its links; that alone does not count.
    ///
    /// # Errors
    ///
    /// From the operating system.
    pub fn changed_to(&self) -> io::Result<Option<u64>> {
        let now = Metadata::from_stat(&rustix::fs::fstat(&self.file)?);
        let content = |metadata: &Metadata| (metadata.size_bytes, metadata.modified);
        let status = |metadata: &Metadata| (metadata.changed, metadata.links);
        let ((changed, links), (changed_now, links_now)) = (status(&self.opened), status(&now));
        let is_changed = content(&now) != content(&self.opened)
            || (changed != changed_now && links == links_now);
        Ok(is_changed.then_some(now.size_bytes))
    }
}
