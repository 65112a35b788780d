//! Files in a target that exists: they get their name when they are complete.
//!
//! A file without a name (`O_TMPFILE`) vanishes with its process. File systems without such files
//! get a hidden name, which a killed process leaves behind; the next restore removes it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::directories::already_exists;
use super::shared::{Place, Shared};

/// The number of hidden names that are tried.
const NAMES_MAX: u32 = 1000;

/// The longest file name that all common file systems accept.
const NAME_BYTES_MAX: usize = 255;

/// Makes the hidden names of one process unique.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Creates a file without a name, or with a hidden one, which is returned as well.
///
/// # Errors
///
/// `AlreadyExists` if the final name is in use and may not be replaced.
pub(super) fn create(
    shared: &Shared,
    place: &Place<'_>,
    mode: Mode,
) -> io::Result<(File, Option<OsString>)> {
    match rustix::fs::statat(&place.directory, place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
            return Err(already_exists("is a directory"));
        }
        Ok(_) if shared.may_replace(place.path) => {}
        Ok(_) => return Err(already_exists("")),
    }
    // The error for missing support differs between file systems and kernels. Other errors (full,
    // read-only, forbidden) occur again below.
    if let Ok(file) = create_unnamed(place, mode) {
        return Ok((file, None));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (file, name) = with_hidden_name(place.name, |hidden| {
        rustix::fs::openat(&place.directory, hidden, flags, mode)
    })?;
    Ok((File::from(file), Some(name)))
}

/// Gives a complete file its name; `hidden` is the one that it has.
pub(super) fn publish(
    shared: &Shared,
    place: &Place<'_>,
    file: &File,
    hidden: Option<&OsStr>,
) -> io::Result<()> {
    let directory = &place.directory;
    let from = match hidden {
        Some(hidden) => hidden.to_owned(),
        None => match link(place, file, place.name) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) if shared.may_replace(place.path) => {
                with_hidden_name(place.name, |hidden| link(place, file, hidden))?.1
            }
            Err(Errno::EXIST) => return Err(already_exists("")),
            Err(error) => return Err(error.into()),
        },
    };
    let renamed = match shared.may_replace(place.path) {
        true => rustix::fs::renameat(directory, &from, directory, place.name),
        false => rename_new(place, &from),
    };
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(directory, &from, AtFlags::empty());
    }
    match renamed {
        Err(Errno::EXIST) => Err(already_exists("")),
        Err(Errno::ISDIR) => Err(already_exists("is a directory")),
        renamed => Ok(renamed?),
    }
}

#[cfg(target_os = "linux")]
fn create_unnamed(place: &Place<'_>, mode: Mode) -> rustix::io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&place.directory, ".", flags, mode)?);
    // Naming it later needs /proc.
    rustix::fs::statat(CWD, descriptor_path(&file), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed(_place: &Place<'_>, _mode: Mode) -> rustix::io::Result<File> {
    Err(Errno::NOTSUP)
}

/// Names a file without a name.
fn link(place: &Place<'_>, file: &File, name: &OsStr) -> rustix::io::Result<()> {
    let path = descriptor_path(file);
    rustix::fs::linkat(CWD, path, &place.directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// Renames to a name that must not exist.
fn rename_new(place: &Place<'_>, from: &OsStr) -> rustix::io::Result<()> {
    let (directory, name) = (&place.directory, place.name);
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(directory, from, directory, name, flags) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return renamed,
        }
    }
    // A hard link fails on an existing name too.
    match rustix::fs::linkat(directory, from, directory, name, AtFlags::empty()) {
        Ok(()) => rustix::fs::unlinkat(directory, from, AtFlags::empty()),
        // Neither: the name was free when the file was created.
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => {
            rustix::fs::renameat(directory, from, directory, name)
        }
        linked => linked,
    }
}

fn descriptor_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Calls `create` with hidden names until one does not exist.
fn with_hidden_name<T>(
    name: &OsStr,
    create: impl Fn(&OsStr) -> rustix::io::Result<T>,
) -> io::Result<(T, OsString)> {
    let mut result = Err(Errno::EXIST);
    for _ in 0..NAMES_MAX {
        let hidden = hidden_name(name);
        result = match create(&hidden) {
            Ok(created) => return Ok((created, hidden)),
            Err(Errno::EXIST) => Err(Errno::EXIST),
            Err(error) => return Err(error.into()),
        };
    }
    result.map_err(io::Error::from)
}

/// `.NAME.PROCESS-COUNTER.part` with a truncated NAME; unique in a process.
fn hidden_name(name: &OsStr) -> OsString {
    let counter = COUNTER.fetch_add(1, Ordering::Relaxed);
    let suffix = format!(".{}-{counter}.part", std::process::id());
    let name = name.as_bytes();
    let length = name.len().min(NAME_BYTES_MAX - 1 - suffix.len());
    let name = name.get(..length).unwrap_or(name);
    OsString::from_vec([b".", name, suffix.as_bytes()].concat())
}
