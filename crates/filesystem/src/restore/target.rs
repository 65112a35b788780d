//! The target of a restore: a new directory under a temporary name, or an existing one.
//!
//! A new directory is created beside its final name as `.NAME.PROCESS-COUNTER.partial` and locked
//! (`flock`) while its process lives. The directory of a killed process has no lock: the next
//! restore to the same name removes it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use refrain_storage::confined::LINK_TEXT;
use refrain_storage::open_at;
use refrain_storage::{ConfinedDirectory, Leftover, remove_tree};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::abandoned::{claim, claim_abandoned, temporary_name, temporary_names};
use super::directories::DIRECTORY_FLAGS;
use super::directory::NEW_DIRECTORY_MODE;
use super::metadata::remove_acls;
use crate::error::named;

/// How many names are tried for the temporary directory.
const NAMES_MAX: u64 = 1000;

/// The suffix of temporary directories.
const SUFFIX: &str = ".partial";

#[derive(Debug)]
pub(super) enum Target {
    /// A new directory under a temporary name, which publishing renames.
    Staged(Staged),
    /// A directory that existed before.
    Existing,
    /// The restore is complete.
    Published,
}

#[derive(Debug)]
pub(super) struct Staged {
    /// The directory that holds both names.
    parent: OwnedFd,
    temporary: OsString,
    name: OsString,
    /// The final path, for messages.
    path: PathBuf,
    _leftover: Leftover,
}

impl Target {
    /// Opens `path` if it is a directory, or creates one under a temporary name if it does not
    /// exist. Also returns the open directory.
    pub(super) fn prepare(path: &Path) -> io::Result<(Target, OwnedFd)> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                // The path comes from the user and may lead through links.
                let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
                let opened = rustix::fs::open(path, flags, Mode::empty());
                let opened = opened.map_err(io::Error::from).map_err(named("open", path));
                Ok((Target::Existing, opened?))
            }
            Ok(_) => Err(no_directory(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => stage(path),
            Err(error) => Err(named("open", path)(error)),
        }
    }

    /// As [`prepare`](Target::prepare), for a path that may not leave a directory: symbolic links
    /// are not followed.
    pub(super) fn prepare_below(
        root: &ConfinedDirectory,
        relative: &Path,
    ) -> io::Result<(Target, OwnedFd)> {
        let path = root.path_of(relative);
        let (parent, name) = root.open_parent(relative)?;
        let found = rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW);
        let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
        match kind {
            Ok(FileType::Directory) => {
                let opened = open_at(&parent, &name, DIRECTORY_FLAGS, Mode::empty());
                let opened = opened.map_err(io::Error::from);
                Ok((Target::Existing, opened.map_err(named("open", &path))?))
            }
            Ok(FileType::Symlink) => {
                let text = format!("{}: refused: {LINK_TEXT}", path.display());
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            Ok(_) => Err(no_directory(&path)),
            Err(Errno::NOENT) => {
                let listed = open_at(&parent, ".", DIRECTORY_FLAGS, Mode::empty());
                let listed = listed.map_err(io::Error::from);
                stage_in(listed.map_err(named("open", &path))?, &name, &path)
            }
            Err(error) => Err(named("open", &path)(error.into())),
        }
    }

    pub(super) fn is_new(&self) -> bool {
        matches!(self, Target::Staged(_))
    }

    pub(super) fn publish(&mut self) -> io::Result<()> {
        if let Target::Staged(staged) = self {
            let (parent, path) = (staged.parent.as_fd(), &staged.path);
            let renamed = rename_to_unused_name(parent, &staged.temporary, &staged.name);
            renamed
                .map_err(io::Error::from)
                .map_err(named("publish", path))?;
        }
        *self = Target::Published;
        Ok(())
    }

    /// Removes a new directory and its contents.
    pub(super) fn discard(&mut self) {
        if let Target::Staged(staged) = self {
            // Runs during drop, which cannot return an error.
            let _ = remove_tree(staged.parent.as_fd(), &staged.temporary);
        }
        *self = Target::Published;
    }
}

fn no_directory(path: &Path) -> io::Error {
    let text = format!("{}: already exists and is not a directory", path.display());
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

fn stage(path: &Path) -> io::Result<(Target, OwnedFd)> {
    let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
        let text = format!("{}: the path does not end with a name", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    fs::create_dir_all(parent).map_err(named("create directory", parent))?;
    let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
    let directory = rustix::fs::open(parent, flags, Mode::empty());
    let directory = directory
        .map_err(io::Error::from)
        .map_err(named("open", parent))?;
    stage_in(directory, name, path)
}

/// Creates a directory under a temporary name in an open directory.
fn stage_in(directory: OwnedFd, name: &OsStr, path: &Path) -> io::Result<(Target, OwnedFd)> {
    remove_abandoned(directory.as_fd(), name);
    for attempt in 0..NAMES_MAX {
        let temporary = temporary_name(name, attempt, SUFFIX);
        let created = create_locked(directory.as_fd(), &temporary);
        let created = created.map_err(io::Error::from);
        let Some(opened) = created.map_err(named("create directory", path))? else {
            continue;
        };
        let leftover = Leftover::note(directory.as_fd(), &temporary);
        // What it inherits from its parent is not part of the archive.
        remove_acls(opened.as_fd());
        let staged = Staged {
            parent: directory,
            temporary,
            name: name.to_owned(),
            path: path.to_path_buf(),
            _leftover: leftover,
        };
        return Ok((Target::Staged(staged), opened));
    }
    let text = format!("{}: no unused temporary name beside it", path.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
}

/// Creates and locks a directory. `None` if the name is in use, or another process took the
/// directory for abandoned before it was locked.
fn create_locked(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
    match rustix::fs::mkdirat(parent, name, NEW_DIRECTORY_MODE) {
        Err(Errno::EXIST) => return Ok(None),
        created => created?,
    }
    let opened = match open_at(parent, name, DIRECTORY_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    Ok(claim(parent, name, &opened).then_some(opened))
}

/// Removes what killed processes of this user left beside the target. Failures do not matter to the
/// restore and are not reported.
fn remove_abandoned(parent: BorrowedFd<'_>, name: &OsStr) {
    for found in temporary_names(parent, Some(name), SUFFIX) {
        let opened = open_at(parent, &found, DIRECTORY_FLAGS, Mode::empty());
        if let Ok(opened) = opened
            && claim_abandoned(parent, &found, &opened)
        {
            let _ = remove_tree(parent, &found);
        }
    }
}

/// Renames to a name that must not exist.
fn rename_to_unused_name(
    parent: BorrowedFd<'_>,
    from: &OsStr,
    to: &OsStr,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE) {
        // File systems without the flag: a plain rename replaces at most an empty directory.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(parent, from, parent, to),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        for left in [
            ".out.1-0.partial",
            ".out.999999999-7.partial",
            ".other.1-0.partial",
        ] {
            fs::create_dir_all(directory.path().join(left).join("deep/er")).unwrap();
            fs::write(directory.path().join(left).join("deep/file"), "x").unwrap();
        }
        let (mut first, _opened) = Target::prepare(&path).unwrap();
        assert_eq!(
            names(directory.path()).len(),
            2,
            "{:?}",
            names(directory.path())
        );
        // The first is still in use.
        let (mut second, _opened) = Target::prepare(&path).unwrap();
        assert_eq!(
            names(directory.path()).len(),
            3,
            "{:?}",
            names(directory.path())
        );
        first.publish().unwrap();
        let error = second.publish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        second.discard();
        assert_eq!(names(directory.path()), [".other.1-0.partial", "out"]);
    }
}
