//! The target of a restore: a new directory under a temporary name, or one that exists.
//!
//! A new directory is created beside its final name as `.NAME.PROCESS-COUNTER.partial` and locked
//! (`flock`) while its process lives. What a killed process left has no lock: the next restore to
//! the same name removes it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use refrain_storage::Leftover;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::directories::{DIRECTORY_FLAGS, NEW_DIRECTORY_MODE};
use super::metadata::remove_acls;
use super::remove::remove_tree;
use crate::error::named;

/// The number of names that are tried for the temporary directory.
const NAMES_MAX: u32 = 1000;

/// The longest file name that all common file systems accept.
const NAME_BYTES_MAX: usize = 255;

const SUFFIX: &str = ".partial";

/// The directory that receives the entries.
#[derive(Debug)]
pub(super) enum Target {
    /// A new directory under a temporary name, which publishing renames.
    Staged(Staged),
    /// A directory that existed before.
    Existing,
    /// The restore is complete.
    Published,
}

/// A new directory under a temporary name.
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
    /// Uses `path` if it is a directory, and creates one under a temporary name if it does not
    /// exist. Returns the open directory as well.
    pub(super) fn prepare(path: &Path) -> io::Result<(Target, OwnedFd)> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                // The path comes from the user and may lead through links.
                let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
                let opened = rustix::fs::open(path, flags, Mode::empty());
                let opened = opened.map_err(io::Error::from).map_err(named("open", path));
                Ok((Target::Existing, opened?))
            }
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{}: already exists and is not a directory", path.display()),
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => stage(path),
            Err(error) => Err(named("open", path)(error)),
        }
    }

    /// Whether the target is a new directory.
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Target::Staged(_))
    }

    /// Gives a new directory its final name.
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

    /// Removes a new directory with its contents.
    pub(super) fn discard(&mut self) {
        if let Target::Staged(staged) = self {
            // Runs during drop, which cannot return an error.
            let _ = remove_tree(staged.parent.as_fd(), &staged.temporary);
        }
        *self = Target::Published;
    }
}

fn stage(path: &Path) -> io::Result<(Target, OwnedFd)> {
    let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
        let text = format!("{}: the path does not end with a name", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    fs::create_dir_all(parent).map_err(named("create directory", parent))?;
    let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
    let directory = rustix::fs::open(parent, flags, Mode::empty());
    let directory = directory
        .map_err(io::Error::from)
        .map_err(named("open", parent))?;
    remove_abandoned(directory.as_fd(), name);
    for attempt in 0..NAMES_MAX {
        let temporary = temporary_name(name, attempt);
        let created = create_locked(directory.as_fd(), &temporary);
        let created = created.map_err(io::Error::from);
        let Some(opened) = created.map_err(named("create directory", path))? else {
            continue;
        };
        let leftover = Leftover::note(&parent.join(&temporary));
        // What the directory beside the target gives to new directories is not archived.
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

/// Creates and locks a directory; `None` if the name is in use, or the new directory was taken for
/// an abandoned one before it was locked.
fn create_locked(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
    match rustix::fs::mkdirat(parent, name, NEW_DIRECTORY_MODE) {
        Err(Errno::EXIST) => return Ok(None),
        created => created?,
    }
    let opened = match rustix::fs::openat(parent, name, DIRECTORY_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    // File systems without locks: then nobody can take it for abandoned either.
    if lock(&opened) == Err(Errno::WOULDBLOCK) || !is_named(parent, name, &opened) {
        return Ok(None);
    }
    Ok(Some(opened))
}

fn lock(directory: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive)
}

/// Whether the name still refers to the open directory.
fn is_named(parent: BorrowedFd<'_>, name: &OsStr, opened: &OwnedFd) -> bool {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let (Ok(found), Ok(opened)) = (found, rustix::fs::fstat(opened)) else {
        return false;
    };
    (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)
}

/// Removes what killed processes of this user left beside the target. Failures are not reported:
/// the restore does not depend on it.
fn remove_abandoned(parent: BorrowedFd<'_>, name: &OsStr) {
    let Ok(entries) = rustix::fs::Dir::read_from(parent) else {
        return;
    };
    let names = entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_bytes().to_vec())
        .filter(|found| is_temporary_name(found, name.as_bytes()));
    let names: Vec<Vec<u8>> = names.collect();
    for found in names {
        remove_if_abandoned(parent, &OsString::from_vec(found));
    }
}

fn remove_if_abandoned(parent: BorrowedFd<'_>, name: &OsStr) {
    let Ok(opened) = rustix::fs::openat(parent, name, DIRECTORY_FLAGS, Mode::empty()) else {
        return;
    };
    let user = rustix::process::geteuid().as_raw();
    let is_own = rustix::fs::fstat(&opened).is_ok_and(|found| found.st_uid == user);
    // Its process holds the lock as long as it lives.
    if is_own && lock(&opened).is_ok() && is_named(parent, name, &opened) {
        let _ = remove_tree(parent, name);
    }
}

/// Renames to a name that must not exist.
fn rename_to_unused_name(
    parent: BorrowedFd<'_>,
    from: &OsStr,
    to: &OsStr,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE) {
        // File systems without the flag. A plain rename replaces only an empty directory.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(parent, from, parent, to),
        result => result,
    }
}

/// `.NAME.PROCESS-COUNTER.partial` with a truncated NAME.
fn temporary_name(name: &OsStr, attempt: u32) -> OsString {
    let suffix = format!(".{}-{attempt}{SUFFIX}", std::process::id());
    let name = truncated(name.as_bytes());
    OsString::from_vec([b".", name, suffix.as_bytes()].concat())
}

/// The longest suffix has two numbers of 10 digits.
fn truncated(name: &[u8]) -> &[u8] {
    const SUFFIX_BYTES_MAX: usize = 22 + SUFFIX.len();
    let length = name.len().min(NAME_BYTES_MAX - 1 - SUFFIX_BYTES_MAX);
    name.get(..length).unwrap_or(name)
}

/// Whether a file name is a temporary name of `name` from any process.
fn is_temporary_name(found: &[u8], name: &[u8]) -> bool {
    let numbers = found
        .strip_prefix(b".")
        .and_then(|rest| rest.strip_prefix(truncated(name)))
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    numbers.is_some_and(|numbers| {
        let mut parts = numbers.split(|byte| *byte == b'-');
        parts
            .by_ref()
            .take(2)
            .filter(|part| is_number(part))
            .count()
            == 2
            && parts.next().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_recognised_and_others_are_not() {
        for length in [1, 100, 254, 255] {
            let name = OsString::from_vec(vec![b'n'; length]);
            let temporary = temporary_name(&name, u32::MAX);
            assert!(temporary.len() <= NAME_BYTES_MAX);
            assert!(is_temporary_name(temporary.as_bytes(), name.as_bytes()));
        }
        for other in [
            "out",
            ".out.partial",
            ".out.1-.partial",
            ".out.1-2-3.partial",
            ".outer.1-2.partial",
            ".out.1-2",
            ".out.x-2.partial",
            "out.1-2.partial",
        ] {
            assert!(!is_temporary_name(other.as_bytes(), b"out"), "{other}");
        }
        assert!(is_temporary_name(b".out.1-2.partial", b"out"));
    }

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
