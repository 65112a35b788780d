//! The open directory of a new file. If the directory is renamed while the file is written, the
//! file is still published in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::open_at::open_at;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

/// The longest file name that all common file systems accept.
const NAME_BYTES_MAX: usize = 255;

/// How many temporary names to try. The first one fails only because of files left by a dead
/// process with the same id, or of a directory shared between process namespaces.
const NAME_ATTEMPTS_MAX: u32 = 1000;

/// Makes the temporary names of one process unique.
static TEMPORARY_COUNTER: AtomicU64 = AtomicU64::new(0);

/// Linux can open a directory this way that it may not list.
#[cfg(target_os = "linux")]
pub(crate) const OPEN_FLAGS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(crate) const OPEN_FLAGS: OFlags = OFlags::RDONLY;

#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: OwnedFd,
}

impl From<OwnedFd> for Directory {
    fn from(descriptor: OwnedFd) -> Directory {
        Directory { descriptor }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A path as directory and name, with symbolic links of the last component resolved.
pub(crate) struct ResolvedPath {
    pub(crate) directory: PathBuf,
    pub(crate) name: OsString,
}

/// Follows symbolic links, also dangling ones, so that the target is written and the link remains.
pub(crate) fn resolve(path: &Path) -> io::Result<ResolvedPath> {
    const LINKS_MAX: usize = 40; // the limit of Linux
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Some(name) = path.file_name().map(OsStr::to_owned) else {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "is a directory, not a file",
            ));
        };
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        match std::fs::read_link(&path) {
            Ok(target) => path = directory.join(target),
            // Not a link, or the path does not exist.
            Err(_) => return Ok(ResolvedPath { directory, name }),
        }
    }
    Err(Errno::LOOP.into())
}

impl Directory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OPEN_FLAGS | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = open_at(CWD, path, flags, Mode::empty())?;
        Ok(Directory { descriptor })
    }

    pub(crate) fn from_descriptor(directory: BorrowedFd<'_>) -> io::Result<Self> {
        let descriptor = directory.try_clone_to_owned()?;
        Ok(Directory { descriptor })
    }

    /// Symbolic links are not followed.
    pub(crate) fn find(&self, name: &OsStr) -> rustix::io::Result<rustix::fs::Stat> {
        rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Creates a file without a name, which vanishes with its last descriptor unless it is linked.
    #[cfg(target_os = "linux")]
    pub(crate) fn create_unnamed(&self, mode: Mode) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open_at(&self.descriptor, ".", flags, mode)?);
        // Naming it later needs /proc.
        rustix::fs::stat(descriptor_path(&file))?;
        Ok(file)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn create_unnamed(&self, _mode: Mode) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Creates a file under a hidden name derived from `name`, which nobody else may read.
    pub(crate) fn create_hidden(&self, name: &OsStr) -> io::Result<(File, OsString)> {
        self.create_hidden_with(name, Mode::RUSR | Mode::WUSR)
    }

    /// The mode that a new file gets here, from the process's umask and the directory's access
    /// control list: probed with an empty file.
    pub(crate) fn usual_mode(&self, name: &OsStr) -> io::Result<Mode> {
        let everybody = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        let (file, hidden) = self.create_hidden_with(name, everybody)?;
        let found = rustix::fs::fstat(&file);
        self.remove_if_same(&hidden, &file);
        Ok(Mode::from_raw_mode(found?.st_mode) & everybody)
    }

    fn create_hidden_with(&self, name: &OsStr, mode: Mode) -> io::Result<(File, OsString)> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        self.with_hidden_name(name, |hidden| {
            let file = open_at(&self.descriptor, hidden, flags, mode)?;
            Ok(File::from(file))
        })
    }

    /// Names an unnamed file. Fails with [`Errno::EXIST`] if the name exists.
    pub(crate) fn link_unnamed(&self, file: &File, name: &OsStr) -> rustix::io::Result<()> {
        let path = descriptor_path(file);
        rustix::fs::linkat(CWD, path, &self.descriptor, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Names an unnamed file with a hidden name derived from `name`.
    pub(crate) fn link_hidden(&self, file: &File, name: &OsStr) -> io::Result<OsString> {
        let linked = self.with_hidden_name(name, |hidden| self.link_unnamed(file, hidden));
        linked.map(|((), hidden)| hidden)
    }

    pub(crate) fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(
            &self.descriptor,
            from,
            &self.descriptor,
            to,
        )?)
    }

    /// Renames, and fails with [`io::ErrorKind::AlreadyExists`] if `to` exists. Atomic.
    pub(crate) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_exclusive(from, to) {
            // Older kernels and network file systems: a hard link fails on an existing name too.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rustix::fs::linkat(
                    &self.descriptor,
                    from,
                    &self.descriptor,
                    to,
                    AtFlags::empty(),
                )?;
                Ok(self.remove(from)?)
            }
            other => Ok(other?),
        }
    }

    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn rename_exclusive(&self, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(
            &self.descriptor,
            from,
            &self.descriptor,
            to,
            rustix::fs::RenameFlags::NOREPLACE,
        )
    }

    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    fn rename_exclusive(&self, _from: &OsStr, _to: &OsStr) -> rustix::io::Result<()> {
        Err(Errno::NOSYS)
    }

    fn remove(&self, name: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())
    }

    /// Removes `name` if it is still `file`; a file of another process is left alone.
    pub(crate) fn remove_if_same(&self, name: &OsStr, file: &File) {
        let existing = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        let (Ok(existing), Ok(ours)) = (existing, rustix::fs::fstat(file.as_fd())) else {
            return;
        };
        if (existing.st_dev, existing.st_ino) == (ours.st_dev, ours.st_ino) {
            // Runs during drop, which cannot return an error.
            let _ = self.remove(name);
        }
    }

    /// Makes created and removed names durable. A directory that may be written but not listed
    /// cannot be opened for this; then only the file itself is synced.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open_at(&self.descriptor, ".", flags, Mode::empty()) {
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(directory) => match retry_on_intr(|| rustix::fs::fsync(&directory)) {
                // Some file systems do not support this for directories.
                Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Calls `create` with hidden names until one is free.
    fn with_hidden_name<T>(
        &self,
        name: &OsStr,
        mut create: impl FnMut(&OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<(T, OsString)> {
        let mut result = Err(Errno::EXIST);
        for _ in 0..NAME_ATTEMPTS_MAX {
            let hidden = hidden_name(name);
            result = match create(&hidden) {
                Ok(created) => return Ok((created, hidden)),
                Err(Errno::EXIST) => Err(Errno::EXIST),
                Err(error) => return Err(error.into()),
            };
        }
        result.map_err(io::Error::from)
    }
}

fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// `.NAME.PROCESS-COUNTER.part` with a truncated NAME; unique in a process.
fn hidden_name(name: &OsStr) -> OsString {
    let counter = TEMPORARY_COUNTER.fetch_add(1, Ordering::Relaxed);
    let suffix = format!(".{}-{counter}.part", std::process::id());
    let name = name.as_bytes();
    let length = name.len().min(NAME_BYTES_MAX - 1 - suffix.len());
    let hidden = [b".", &name[..length], suffix.as_bytes()].concat();
    OsString::from_vec(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_hidden_short_and_unique() {
        for length in [1, 100, 254, 255] {
            let name = OsString::from_vec(vec![b'n'; length]);
            let (first, second) = (hidden_name(&name), hidden_name(&name));
            assert_ne!(first, second);
            assert!(first.as_bytes().starts_with(b".n"));
            assert!(first.len() <= NAME_BYTES_MAX);
        }
    }

    #[test]
    fn links_are_followed_to_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("sub")).unwrap();
        std::os::unix::fs::symlink("sub/b", path("a")).unwrap();
        std::os::unix::fs::symlink("../missing", path("sub/b")).unwrap();
        let target = resolve(&path("a")).unwrap();
        assert_eq!(target.directory.join(&target.name), path("sub/../missing"));
        std::os::unix::fs::symlink("loop", path("loop")).unwrap();
        assert!(resolve(&path("loop")).is_err());
        assert!(resolve(Path::new("/")).is_err());
        assert_eq!(
            resolve(Path::new("plain")).unwrap().directory,
            Path::new(".")
        );
    }

    #[test]
    fn exclusive_rename_and_removal_leave_other_files_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::open(temporary.path()).unwrap();
        let name = OsStr::new("name");
        let (file, hidden) = directory.create_hidden(name).unwrap();
        std::fs::write(temporary.path().join(name), "theirs").unwrap();
        let error = directory.rename_new(&hidden, name).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        directory.remove_if_same(name, &file);
        assert!(temporary.path().join(name).exists());
        directory.remove_if_same(&hidden, &file);
        assert!(!temporary.path().join(&hidden).exists());
        directory.sync().unwrap();
    }
}
