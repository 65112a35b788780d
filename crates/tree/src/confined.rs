//! Paths from an archive, walked without ever leaving the root and without following a link.
//!
//! Names are resolved one part at a time with `openat(O_NOFOLLOW)` from an open directory, so that
//! neither the archive (a link, then a file "below" it) nor another process (a directory replaced
//! by a link in between) can lead out of the root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Directories are made for their owner alone; the real mode comes when all is in place.
const NEW_DIRECTORY_MODE: Mode = Mode::RWXU;

/// A path inside the root: its parts, none of them `.`, `..` or empty. No parts: the root itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfinedPath {
    parts: Vec<OsString>,
}

impl ConfinedPath {
    /// Checks a path from an archive.
    ///
    /// # Errors
    ///
    /// `InvalidData` for absolute paths, paths with `..`, and paths with NUL.
    pub fn new(path: &[u8]) -> io::Result<ConfinedPath> {
        let refuse = |why: &str| {
            let shown = String::from_utf8_lossy(path);
            let text = format!("archive path {shown:?} {why}");
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        };
        if path.is_empty() {
            return refuse("is empty");
        }
        if path.starts_with(b"/") {
            return refuse("is absolute");
        }
        if path.contains(&0) {
            return refuse("contains NUL");
        }
        let mut parts = Vec::new();
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return refuse("leaves the directory with .."),
                part => parts.push(OsStr::from_bytes(part).to_owned()),
            }
        }
        Ok(ConfinedPath { parts })
    }

    /// The directory it lies in and its last part; `None` for the root.
    pub fn split(&self) -> Option<(&[OsString], &OsStr)> {
        let (name, parents) = self.parts.split_last()?;
        Some((parents, name))
    }

    /// All parts.
    pub fn parts(&self) -> &[OsString] {
        &self.parts
    }

    /// For messages.
    pub fn display(&self) -> String {
        match self.parts.is_empty() {
            true => ".".to_string(),
            false => {
                let parts: Vec<_> = self
                    .parts
                    .iter()
                    .map(|part| part.to_string_lossy())
                    .collect();
                parts.join("/")
            }
        }
    }
}

/// The root, and the directory used last (the next entry is mostly its neighbour).
#[derive(Debug)]
pub struct Confined {
    root: OwnedFd,
    last: Option<(Vec<OsString>, OwnedFd)>,
}

/// What to do about parents that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Make them.
    Make,
    /// Report them.
    Refuse,
}

impl Confined {
    /// Opens the root, which may be reached through links: its path is the user's.
    pub fn open(root: &Path) -> io::Result<Confined> {
        let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Confined { root, last: None })
    }

    /// The directory with these parts. `made` is told each directory that had to be made.
    pub fn directory(
        &mut self,
        parts: &[OsString],
        missing: Missing,
        mut made: impl FnMut(&[OsString]),
    ) -> io::Result<BorrowedFd<'_>> {
        let is_last = self.last.as_ref().is_some_and(|(last, _)| last == parts);
        if !is_last && !parts.is_empty() {
            let opened = self.walk(parts, missing, &mut made)?;
            self.last = Some((parts.to_vec(), opened));
        }
        match &self.last {
            Some((_, directory)) if !parts.is_empty() => Ok(directory.as_fd()),
            _ => Ok(self.root.as_fd()),
        }
    }

    fn walk(
        &self,
        parts: &[OsString],
        missing: Missing,
        made: &mut impl FnMut(&[OsString]),
    ) -> io::Result<OwnedFd> {
        let mut directory = self.root.try_clone()?;
        for (depth, part) in parts.iter().enumerate() {
            let opened = rustix::fs::openat(&directory, part, DIRECTORY_FLAGS, Mode::empty());
            directory = match opened {
                Err(rustix::io::Errno::NOENT) if missing == Missing::Make => {
                    rustix::fs::mkdirat(&directory, part, NEW_DIRECTORY_MODE)?;
                    made(parts.get(..=depth).unwrap_or(parts));
                    rustix::fs::openat(&directory, part, DIRECTORY_FLAGS, Mode::empty())?
                }
                opened => opened?,
            };
        }
        Ok(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for path in ["", "/", "/etc", "..", "../a", "a/..", "a/../../b", "a\0b"] {
            assert!(ConfinedPath::new(path.as_bytes()).is_err(), "{path:?}");
        }
        for (path, shown) in [
            (".", "."),
            ("./", "."),
            ("a//b/./c/", "a/b/c"),
            ("..a/...", "..a/..."),
        ] {
            assert_eq!(ConfinedPath::new(path.as_bytes()).unwrap().display(), shown);
        }
    }
}
