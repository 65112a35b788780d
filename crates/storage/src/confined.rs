//! A directory that no output created through it can leave, whatever the names say.
//!
//! The path of the directory itself is the user's, and may lead through symbolic links. Below it
//! none is followed: each component is opened with `O_NOFOLLOW` relative to the one before, so that
//! neither an earlier member of an archive nor another process can interpose a link.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use crate::open_at::open_at;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::failure::at;

/// New directories have this mode without the process's umask.
const NEW_MODE: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// An open directory below which output is created.
#[derive(Debug)]
pub struct ConfinedDirectory {
    directory: Directory,
    path: PathBuf,
}

impl ConfinedDirectory {
    /// Opens the directory at `path`, creating it and its parents if needed. The empty path is the
    /// current directory.
    ///
    /// # Errors
    /// From the operating system.
    pub fn open(path: &Path) -> io::Result<ConfinedDirectory> {
        let opened = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fs::create_dir_all(opened).map_err(at("create directory", opened))?;
        let directory = Directory::open(opened).map_err(at("open", opened))?;
        Ok(ConfinedDirectory {
            directory,
            path: path.to_owned(),
        })
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The full path of `relative`, for messages.
    #[must_use]
    pub fn path_of(&self, relative: &Path) -> PathBuf {
        self.path.join(relative)
    }

    /// Opens the directory that is to hold `relative`, creating it and its parents if needed.
    /// Returns it and the last component.
    ///
    /// # Errors
    /// `InvalidData` for a path that leaves the directory, by `..` or by a symbolic link;
    /// `NotADirectory` if something else is in the way; otherwise from the operating system.
    pub fn open_parent(&self, relative: &Path) -> io::Result<(OwnedFd, OsString)> {
        let mut names = Vec::new();
        for component in relative.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(self.refused(relative, "the path leaves the output directory")),
            }
        }
        let Some((last, parents)) = names.split_last() else {
            return Err(self.refused(relative, "the path does not end with a name"));
        };
        let mut opened = self.directory.as_fd().try_clone_to_owned()?;
        let mut path = PathBuf::new();
        for name in parents {
            path.push(name);
            opened = self.open_child(&opened, name, &path)?;
        }
        Ok((opened, (*last).to_owned()))
    }

    /// Removes a directory if it is empty.
    pub fn remove_if_empty(&self, relative: &Path) {
        if let Ok((parent, name)) = self.open_parent(relative) {
            let _ = rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR);
        }
    }

    fn open_child(&self, parent: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<OwnedFd> {
        let open = || Directory::open_child(parent.as_fd(), name);
        let opened = match open() {
            Err(Errno::NOENT) => match rustix::fs::mkdirat(parent, name, NEW_MODE) {
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(error) => {
                    let error = io::Error::from(error);
                    return Err(at("create directory", &self.path_of(path))(error));
                }
            },
            opened => opened,
        };
        match opened {
            Err(Errno::NOTDIR | Errno::LOOP) if is_link(parent.as_fd(), name) => {
                Err(self.refused(path, LINK_TEXT))
            }
            Err(Errno::NOTDIR) => {
                let text = format!(
                    "{}: already exists and is not a directory",
                    self.path_of(path).display()
                );
                Err(io::Error::new(io::ErrorKind::NotADirectory, text))
            }
            Err(error) => Err(at("open", &self.path_of(path))(error.into())),
            Ok(opened) => Ok(opened),
        }
    }

    fn refused(&self, relative: &Path, why: &str) -> io::Error {
        let text = format!("{}: refused: {why}", self.path_of(relative).display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

impl AsFd for ConfinedDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Why a symbolic link below a confined directory is not followed.
pub const LINK_TEXT: &str = "a symbolic link could lead out of the output directory";

fn is_link(parent: BorrowedFd<'_>, name: &OsStr) -> bool {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}

impl Directory {
    fn open_child(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
        let flags =
            crate::directory::OPEN_FLAGS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open_at(parent, name, flags, Mode::empty())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn parents_are_created_and_links_and_dots_lead_nowhere() {
        let temporary = tempfile::tempdir().unwrap();
        let outside = temporary.path().join("outside");
        fs::create_dir(&outside).unwrap();
        symlink("outside", temporary.path().join("root")).unwrap();
        // The root itself may be the user's link.
        let root = ConfinedDirectory::open(&temporary.path().join("root")).unwrap();
        let (parent, name) = root.open_parent(Path::new("a/./b/c")).unwrap();
        assert_eq!(name, "c");
        rustix::fs::mkdirat(&parent, "c", NEW_MODE).unwrap();
        assert!(outside.join("a/b/c").is_dir());
        root.remove_if_empty(Path::new("a/b"));
        root.remove_if_empty(Path::new("a/b/c"));
        assert!(outside.join("a/b").is_dir() && !outside.join("a/b/c").exists());

        symlink("../..", outside.join("a/up")).unwrap();
        symlink("b", outside.join("a/same")).unwrap();
        fs::write(outside.join("a/file"), "x").unwrap();
        for path in [
            "a/up/x",
            "a/same/x",
            "../x",
            "a/../../x",
            "/x",
            "",
            ".",
            "a/..",
        ] {
            let error = root.open_parent(Path::new(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{path}: {error}");
        }
        let error = root.open_parent(Path::new("a/file/x")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory, "{error}");
    }
}
