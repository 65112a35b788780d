//! An entry that takes the place of another one, which exists until then: a restore that is
//! interrupted at any moment leaves the one or the other.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::abandoned::temporary_name;
use super::directory::{Directory, NEW_DIRECTORY_MODE, already_exists};

/// The number of hidden names that are tried.
const NAMES_MAX: u32 = 1000;

/// The end of a hidden name.
pub(super) const SUFFIX: &str = ".refrain-part";

/// Makes the hidden names of one process unique.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Calls `create` with hidden names until one does not exist.
pub(super) fn with_hidden_name<T>(
    name: &OsStr,
    create: impl Fn(&OsStr) -> rustix::io::Result<T>,
) -> io::Result<(T, OsString)> {
    let mut result = Err(Errno::EXIST);
    for _ in 0..NAMES_MAX {
        let counter = COUNTER.fetch_add(1, Ordering::Relaxed);
        let hidden = temporary_name(name, counter, SUFFIX);
        result = match create(&hidden) {
            Ok(created) => return Ok((created, hidden)),
            Err(Errno::EXIST) => Err(Errno::EXIST),
            Err(error) => return Err(error.into()),
        };
    }
    result.map_err(io::Error::from)
}

/// Creates something that is no directory under a hidden name, and renames it over `name`.
///
/// # Errors
///
/// Those of the system, and `AlreadyExists` for a directory: then it remains what it was.
pub(super) fn replace<T>(
    directory: &Directory,
    name: &OsStr,
    create: impl Fn(&OsStr) -> rustix::io::Result<T>,
) -> io::Result<T> {
    let (created, hidden) = with_hidden_name(name, create)?;
    rename_over(directory, &hidden, name)?;
    Ok(created)
}

/// Renames what has a hidden name over `name`, or removes it.
pub(super) fn rename_over(directory: &Directory, hidden: &OsStr, name: &OsStr) -> io::Result<()> {
    let renamed = rustix::fs::renameat(directory, hidden, directory, name);
    // Also after success: of two names of one file, rename removes neither.
    let _ = rustix::fs::unlinkat(directory, hidden, AtFlags::empty());
    match renamed {
        Err(Errno::ISDIR) => Err(already_exists("is a directory")),
        renamed => Ok(renamed?),
    }
}

/// Puts a new directory in the place of something that is no directory.
///
/// # Errors
///
/// Those of the system: then it remains what it was.
pub(super) fn replace_by_directory(directory: &Directory, name: &OsStr) -> rustix::io::Result<()> {
    let create = |hidden: &OsStr| rustix::fs::mkdirat(directory, hidden, NEW_DIRECTORY_MODE);
    let created = with_hidden_name(name, create);
    let ((), hidden) =
        created.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let exchanged = exchange(directory, &hidden, name);
    let removed =
        exchanged.and_then(|()| rustix::fs::unlinkat(directory, &hidden, AtFlags::empty()));
    if exchanged.is_ok() && removed.is_err() {
        // What was there became a directory meanwhile.
        let _ = exchange(directory, &hidden, name);
    }
    if removed.is_err() {
        let _ = rustix::fs::unlinkat(directory, &hidden, AtFlags::REMOVEDIR);
    }
    removed
}

/// Exchanges two names.
fn exchange(directory: &Directory, hidden: &OsStr, name: &OsStr) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        match rustix::fs::renameat_with(directory, hidden, directory, name, flags) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            exchanged => return exchanged,
        }
    }
    // Without support of the file system: only a kill in between leaves what was there under a
    // hidden name.
    let move_aside = |aside: &OsStr| rustix::fs::renameat(directory, name, directory, aside);
    let moved = with_hidden_name(name, move_aside);
    let ((), aside) = moved.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    match rustix::fs::renameat(directory, hidden, directory, name) {
        Ok(()) => rustix::fs::renameat(directory, &aside, directory, hidden),
        Err(error) => {
            let _ = rustix::fs::renameat(directory, &aside, directory, name);
            Err(error)
        }
    }
}
