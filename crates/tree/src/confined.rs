//! Paths from an archive, resolved without leaving a root and without following a link.
//!
//! Components are opened one at a time with `openat(O_NOFOLLOW)` from an open directory. So neither
//! the archive (a link, then a file "below" it) nor another process (a directory replaced by a link
//! meanwhile) can lead out of the root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::refused;

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Directories are created for their owner only; they get their final mode last.
const NEW_DIRECTORY_MODE: Mode = Mode::RWXU;

/// A path inside the root as its components, none of which is `.`, `..` or empty. Without
/// components it is the root itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ConfinedPath {
    components: Vec<OsString>,
}

impl ConfinedPath {
    /// Checks a path from an archive.
    ///
    /// # Errors
    ///
    /// `InvalidData` for empty and absolute paths, paths with `..`, and paths with NUL.
    pub(crate) fn new(path: &[u8]) -> io::Result<ConfinedPath> {
        let refuse = |why: &str| {
            let text = String::from_utf8_lossy(path);
            Err(refused(&format!("archive path {text:?} {why}")))
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
        let mut components = Vec::new();
        for component in path.split(|byte| *byte == b'/') {
            match component {
                b"" | b"." => {}
                b".." => return refuse("contains '..'"),
                component => components.push(OsStr::from_bytes(component).to_owned()),
            }
        }
        Ok(ConfinedPath { components })
    }

    /// The components of the parent directory, and the last component; `None` for the root.
    pub(crate) fn split(&self) -> Option<(&[OsString], &OsStr)> {
        let (name, parents) = self.components.split_last()?;
        Some((parents, name))
    }

    /// All components.
    pub(crate) fn components(&self) -> &[OsString] {
        &self.components
    }

    /// The path as text, for messages.
    pub(crate) fn display(&self) -> String {
        if self.components.is_empty() {
            return ".".to_string();
        }
        let components = self.components.iter();
        let texts: Vec<_> = components.map(|part| part.to_string_lossy()).collect();
        texts.join("/")
    }
}

/// An open root, and the directory that was used last: most entries are in the same directory as
/// the entry before.
#[derive(Debug)]
pub(crate) struct ConfinedRoot {
    root: OwnedFd,
    last: Option<(Vec<OsString>, OwnedFd)>,
}

/// The treatment of parent directories that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingParents {
    /// They are created.
    Create,
    /// They are an error.
    Refuse,
}

impl ConfinedRoot {
    /// Opens the root. Its path comes from the user and may lead through links.
    pub(crate) fn open(root: &Path) -> io::Result<ConfinedRoot> {
        let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(ConfinedRoot { root, last: None })
    }

    /// Opens the directory with these components. `on_created` receives the components of each
    /// directory that was created.
    pub(crate) fn directory(
        &mut self,
        components: &[OsString],
        missing: MissingParents,
        mut on_created: impl FnMut(&[OsString]),
    ) -> io::Result<BorrowedFd<'_>> {
        let is_last = self
            .last
            .as_ref()
            .is_some_and(|(last, _)| last == components);
        if !is_last && !components.is_empty() {
            let opened = self.resolve(components, missing, &mut on_created)?;
            self.last = Some((components.to_vec(), opened));
        }
        match &self.last {
            Some((_, directory)) if !components.is_empty() => Ok(directory.as_fd()),
            _ => Ok(self.root.as_fd()),
        }
    }

    fn resolve(
        &self,
        components: &[OsString],
        missing: MissingParents,
        on_created: &mut impl FnMut(&[OsString]),
    ) -> io::Result<OwnedFd> {
        let mut directory = self.root.try_clone()?;
        for (depth, component) in components.iter().enumerate() {
            let opened = rustix::fs::openat(&directory, component, DIRECTORY_FLAGS, Mode::empty());
            directory = match opened {
                Err(rustix::io::Errno::NOENT) if missing == MissingParents::Create => {
                    rustix::fs::mkdirat(&directory, component, NEW_DIRECTORY_MODE)?;
                    on_created(components.get(..=depth).unwrap_or(components));
                    rustix::fs::openat(&directory, component, DIRECTORY_FLAGS, Mode::empty())?
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
    fn refuses_paths_that_leave_the_root() {
        for path in ["", "/", "/etc", "..", "../a", "a/..", "a/../../b", "a\0b"] {
            let error = ConfinedPath::new(path.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{path:?}");
        }
        for (path, text) in [
            (".", "."),
            ("./", "."),
            ("a//b/./c/", "a/b/c"),
            ("..a/...", "..a/..."),
        ] {
            assert_eq!(ConfinedPath::new(path.as_bytes()).unwrap().display(), text);
        }
    }
}
