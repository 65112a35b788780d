//! Files in an existing target: they get their name when they are complete.
//!
//! A file without a name (`O_TMPFILE`) vanishes with its process. On file systems without such
//! files it has a hidden name, which a killed process leaves behind. The next restore that needs a
//! hidden name in the same directory removes it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

#[cfg(target_os = "linux")]
use refrain_storage::open_at;
use rustix::fs::CWD;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::abandoned::{claim, claim_abandoned, temporary_names};
use super::created::Placed;
use super::directory::{Directory, already_exists};
use super::replace::{SUFFIX, rename_over, with_hidden_name};
use super::shared::{Place, Shared};

/// Creates a file without a name, or with a hidden one, which is also returned.
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
    // read-only, forbidden) recur below.
    if shared.has_unnamed_files.load(Ordering::Relaxed)
        && let Ok(file) = create_unnamed(place, shared.access(), mode)
    {
        return Ok((file, None));
    }
    let (file, name) = create_hidden(place, shared.access())?;
    shared.has_unnamed_files.store(false, Ordering::Relaxed);
    Ok((file, Some(name)))
}

/// Creates and locks a file with a hidden name. Nobody else may read it until it is complete.
fn create_hidden(place: &Place<'_>, access: OFlags) -> io::Result<(File, OsString)> {
    let directory = &place.directory;
    if !directory.is_cleaned.swap(true, Ordering::Relaxed) {
        remove_abandoned(directory);
    }
    let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let (file, name) = with_hidden_name(place.name, |hidden| {
        let file = open_at(directory, hidden, flags, mode)?;
        if claim(directory.as_fd(), hidden, &file) {
            Ok(file)
        } else {
            Err(Errno::EXIST)
        }
    })?;
    Ok((File::from(file), name))
}

/// Removes hidden files of killed processes. Failures do not matter to the restore and are not
/// reported.
fn remove_abandoned(directory: &Directory) {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for found in temporary_names(directory.as_fd(), None, SUFFIX) {
        let opened = open_at(directory, &found, flags, Mode::empty());
        if let Ok(opened) = opened
            && claim_abandoned(directory.as_fd(), &found, &opened)
        {
            let _ = rustix::fs::unlinkat(directory, &found, AtFlags::empty());
        }
    }
}

/// Gives a complete file its name; `hidden` is its present one. An existing entry stays until then.
pub(super) fn publish(
    shared: &Shared,
    place: &Place<'_>,
    file: &File,
    hidden: Option<&OsStr>,
) -> io::Result<Placed> {
    let named = match hidden {
        Some(hidden) => rename_new(place, hidden),
        None => link(shared, place, file, place.name),
    };
    match (named, hidden) {
        (Ok(()), _) => Ok(Placed::New),
        (Err(Errno::EXIST), _) if shared.may_replace(place.path) => {
            let hidden = match hidden {
                Some(hidden) => hidden.to_owned(),
                None => with_hidden_name(place.name, |hidden| link(shared, place, file, hidden))?.1,
            };
            rename_over(&place.directory, &hidden, place.name)?;
            Ok(Placed::Replacing)
        }
        (Err(error), hidden) => {
            if let Some(hidden) = hidden {
                let _ = rustix::fs::unlinkat(&place.directory, hidden, AtFlags::empty());
            }
            match error {
                Errno::EXIST => Err(already_exists("")),
                error => Err(error.into()),
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn create_unnamed(place: &Place<'_>, access: OFlags, mode: Mode) -> rustix::io::Result<File> {
    let flags = OFlags::TMPFILE | access | OFlags::CLOEXEC;
    let file = open_at(&place.directory, ".", flags, mode)?;
    Ok(File::from(file))
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed(_: &Place<'_>, _: OFlags, _: Mode) -> rustix::io::Result<File> {
    Err(Errno::NOTSUP)
}

#[cfg(target_os = "linux")]
fn link(shared: &Shared, place: &Place<'_>, file: &File, name: &OsStr) -> rustix::io::Result<()> {
    // Permitted to root, and since Linux 6.10 to the user who opened the file.
    if shared.links_directly.load(Ordering::Relaxed) {
        match rustix::fs::linkat(file, "", &place.directory, name, AtFlags::EMPTY_PATH) {
            Err(Errno::NOENT | Errno::INVAL) => {
                shared.links_directly.store(false, Ordering::Relaxed);
            }
            linked => return linked,
        }
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, path, &place.directory, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &Shared, _: &Place<'_>, _: &File, _: &OsStr) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
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
    // A hard link also fails if the name exists.
    match rustix::fs::linkat(directory, from, directory, name, AtFlags::empty()) {
        Ok(()) => rustix::fs::unlinkat(directory, from, AtFlags::empty()),
        // Neither is supported. The name was free when the file was created.
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => {
            rustix::fs::renameat(directory, from, directory, name)
        }
        linked => linked,
    }
}
