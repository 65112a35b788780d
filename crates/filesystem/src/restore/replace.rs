//! Replaces existing entries atomically: a restore interrupted at any moment leaves either the old
//! or the new entry.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::abandoned::temporary_name;
use super::directory::{Directory, NEW_DIRECTORY_MODE, already_exists};

/// How many hidden names are tried.
const NAMES_MAX: u32 = 1000;

/// The suffix of hidden names.
pub(super) const SUFFIX: &str = ".refrain-part";

/// Makes the hidden names of one process unique.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Calls `create` with hidden names until one is free.
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

/// Creates something other than a directory under a hidden name, and renames it over `name`.
///
/// # Errors
///
/// From the operating system, and `AlreadyExists` for a directory, which then stays as it was.
pub(super) fn replace<T>(
    directory: &Directory,
    name: &OsStr,
    create: impl Fn(&OsStr) -> rustix::io::Result<T>,
) -> io::Result<T> {
    let (created, hidden) = with_hidden_name(name, create)?;
    rename_over(directory, &hidden, name)?;
    Ok(created)
}

/// Renames the hidden entry over `name`, or removes it.
pub(super) fn rename_over(directory: &Directory, hidden: &OsStr, name: &OsStr) -> io::Result<()> {
    let renamed = rustix::fs::renameat(directory, hidden, directory, name);
    // Also after success: rename does nothing if both names are links to the same file.
    let _ = rustix::fs::unlinkat(directory, hidden, AtFlags::empty());
    match renamed {
        Err(Errno::ISDIR) => Err(already_exists("is a directory")),
        renamed => Ok(renamed?),
    }
}

/// Replaces something other than a directory by a new directory.
///
/// # Errors
///
/// From the operating system; then the old entry stays as it was.
pub(super) fn replace_by_directory(directory: &Directory, name: &OsStr) -> rustix::io::Result<()> {
    let create = |hidden: &OsStr| rustix::fs::mkdirat(directory, hidden, NEW_DIRECTORY_MODE);
    let created = with_hidden_name(name, create);
    let ((), hidden) =
        created.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let exchanged = exchange(directory, &hidden, name);
    let removed =
        exchanged.and_then(|()| rustix::fs::unlinkat(directory, &hidden, AtFlags::empty()));
    if exchanged.is_ok() && removed.is_err() {
        // The old entry became a directory in the meantime.
        let _ = exchange(directory, &hidden, name);
    }
    if removed.is_err() {
        let _ = rustix::fs::unlinkat(directory, &hidden, AtFlags::REMOVEDIR);
    }
    removed
}

fn exchange(directory: &Directory, hidden: &OsStr, name: &OsStr) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        match rustix::fs::renameat_with(directory, hidden, directory, name, flags) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            exchanged => return exchanged,
        }
    }
    // Without support by the file system, only a kill in between leaves the old entry under a
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
