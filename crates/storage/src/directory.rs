//! The directory a new file goes to, held open: whatever happens to its name meanwhile, the file
//! lands where it was begun.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Longest file name that all common file systems take.
const NAME_BYTES_MAX: usize = 255;

/// Temporary names tried before giving up: only leftovers of dead processes with our number, or a
/// directory shared with processes that cannot see us, make the first one fail.
const NAME_ATTEMPTS_MAX: u32 = 1000;

/// Tells apart the temporary names of one process.
static TEMPORARY_COUNTER: AtomicU64 = AtomicU64::new(0);

/// How the directory is held. Linux can hold one that it may not list.
#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::RDONLY;

#[derive(Debug)]
pub(crate) struct Directory {
    held: OwnedFd,
}

/// A path without the symbolic links of its last component, as directory and name.
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    pub(crate) name: OsString,
}

/// Follows symbolic links, also dangling ones, so that a link is written through and not replaced.
pub(crate) fn resolve(path: &Path) -> io::Result<Place> {
    const LINKS_MAX: usize = 40; // as Linux counts
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
            // Not a link, or nothing there.
            Err(_) => return Ok(Place { directory, name }),
        }
    }
    Err(Errno::LOOP.into())
}

impl Directory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = HOLD | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Directory { held })
    }

    /// A file without a name, that vanishes with its last descriptor unless it is linked.
    #[cfg(target_os = "linux")]
    pub(crate) fn create_unnamed(&self, mode: Mode) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.held, ".", flags, mode)?);
        // Without /proc there would be no way to give it a name.
        rustix::fs::stat(descriptor_path(&file))?;
        Ok(file)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn create_unnamed(&self, _mode: Mode) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A new file under a hidden name next to `name`.
    pub(crate) fn create_hidden(&self, name: &OsStr, mode: Mode) -> io::Result<(File, OsString)> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        self.with_hidden_name(name, |hidden| {
            let file = rustix::fs::openat(&self.held, hidden, flags, mode)?;
            Ok(File::from(file))
        })
    }

    /// Gives an unnamed file its name. Fails with [`Errno::EXIST`] when the name is taken.
    pub(crate) fn link_unnamed(&self, file: &File, name: &OsStr) -> rustix::io::Result<()> {
        let path = descriptor_path(file);
        rustix::fs::linkat(CWD, path, &self.held, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Gives an unnamed file a hidden name next to `name`.
    pub(crate) fn link_hidden(&self, file: &File, name: &OsStr) -> io::Result<OsString> {
        let linked = self.with_hidden_name(name, |hidden| self.link_unnamed(file, hidden));
        linked.map(|((), hidden)| hidden)
    }

    /// Renames over whatever is there.
    pub(crate) fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.held, from, &self.held, to)?)
    }

    /// Renames, and fails with [`io::ErrorKind::AlreadyExists`] if `to` is taken; no race between.
    pub(crate) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_exclusive(from, to) {
            // Older kernels and network file systems: a hard link refuses a taken name as well.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rustix::fs::linkat(&self.held, from, &self.held, to, AtFlags::empty())?;
                Ok(self.remove(from)?)
            }
            other => Ok(other?),
        }
    }

    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn rename_exclusive(&self, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(
            &self.held,
            from,
            &self.held,
            to,
            rustix::fs::RenameFlags::NOREPLACE,
        )
    }

    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    fn rename_exclusive(&self, _from: &OsStr, _to: &OsStr) -> rustix::io::Result<()> {
        Err(Errno::NOSYS)
    }

    fn remove(&self, name: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.held, name, AtFlags::empty())
    }

    /// Removes `name` if it still is `file`: what somebody else put there in our place is theirs.
    pub(crate) fn remove_if_same(&self, name: &OsStr, file: &File) {
        let there = rustix::fs::statat(&self.held, name, AtFlags::SYMLINK_NOFOLLOW);
        let (Ok(there), Ok(ours)) = (there, rustix::fs::fstat(file.as_fd())) else {
            return;
        };
        if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) {
            // Runs while dropping; there is nobody left to tell.
            let _ = self.remove(name);
        }
    }

    /// Makes names given and taken away durable. A directory that may be written but not listed
    /// cannot be opened for this; the file itself is safe then, its name soon.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.held, ".", flags, Mode::empty()) {
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(directory) => match rustix::fs::fsync(&directory) {
                // Some file systems have no such thing for directories.
                Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Calls `make` with hidden names until one is free.
    fn with_hidden_name<T>(
        &self,
        name: &OsStr,
        mut make: impl FnMut(&OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<(T, OsString)> {
        let mut result = Err(Errno::EXIST);
        for _ in 0..NAME_ATTEMPTS_MAX {
            let hidden = hidden_name(name);
            result = match make(&hidden) {
                Ok(made) => return Ok((made, hidden)),
                Err(Errno::EXIST) => Err(Errno::EXIST),
                Err(error) => return Err(error.into()),
            };
        }
        result.map_err(io::Error::from)
    }
}

/// Where Linux shows an open descriptor as a path.
fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// `.NAME.PROCESS-COUNTER.part`, with NAME cut to fit; never the same twice in a process.
fn hidden_name(name: &OsStr) -> OsString {
    let counter = TEMPORARY_COUNTER.fetch_add(1, Ordering::Relaxed);
    let suffix = format!(".{}-{counter}.part", std::process::id());
    let name = name.as_bytes();
    let kept = name.len().min(NAME_BYTES_MAX - 1 - suffix.len());
    let hidden = [b".", &name[..kept], suffix.as_bytes()].concat();
    OsString::from_vec(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_hidden_short_and_different() {
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
        let place = resolve(&path("a")).unwrap();
        assert_eq!(place.directory.join(&place.name), path("sub/../missing"));
        std::os::unix::fs::symlink("loop", path("loop")).unwrap();
        assert!(resolve(&path("loop")).is_err());
        assert!(resolve(Path::new("/")).is_err());
        assert_eq!(
            resolve(Path::new("plain")).unwrap().directory,
            Path::new(".")
        );
    }

    #[test]
    fn exclusive_rename_refuses_and_removal_spares_strangers() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::open(temporary.path()).unwrap();
        let name = OsStr::new("name");
        let (file, hidden) = directory
            .create_hidden(name, Mode::RUSR | Mode::WUSR)
            .unwrap();
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
