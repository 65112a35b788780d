//! Symbolic links, devices, FIFOs and hard links.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::directories::MissingParents;
use super::metadata::Metadata;
use super::path::ConfinedPath;
use super::shared::{Place, Shared};
use super::summary::{HardLink, Omission};
use refrain_entries::{Entry, EntryKind};

/// Creates a symbolic link, device or FIFO with its metadata.
pub(super) fn create(shared: &Shared, entry: &Entry, path: &ConfinedPath) -> io::Result<()> {
    let place = shared.place(path)?;
    let placed = match shared.create(&place, |name| create_new(&place, name, entry)) {
        Err(error) if is_omission(&error) => {
            shared.tally.omission(if entry.kind.is_device() {
                Omission::Device
            } else {
                Omission::SpecialFile
            });
            return Ok(());
        }
        created => created?.1,
    };
    let noted = shared.directories.created.note(path.as_bytes(), placed);
    shared.done(path);
    let applied = shared.applier.apply_to_name(
        place.directory.as_fd(),
        place.name,
        place.directory.gives_acl,
        &Metadata::from_entry(entry),
    );
    noted.and(applied)
}

/// Whether the user may not create such entries, or the file system cannot hold them.
fn is_omission(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::PERM | Errno::NOTSUP | Errno::NOSYS)
    )
}

fn create_new(place: &Place<'_>, name: &OsStr, entry: &Entry) -> rustix::io::Result<()> {
    let directory = &place.directory;
    let kind = match entry.kind {
        EntryKind::Symlink => {
            let target = entry.link_target.as_deref().unwrap_or_default();
            return rustix::fs::symlinkat(target, directory, name);
        }
        EntryKind::CharacterDevice => FileType::CharacterDevice,
        EntryKind::BlockDevice => FileType::BlockDevice,
        _ => FileType::Fifo,
    };
    let (major, minor) = if entry.kind.is_device() { entry.device } else { (0, 0) };
    let device = rustix::fs::makedev(major, minor);
    rustix::fs::mknodat(directory, name, kind, Mode::RUSR | Mode::WUSR, device)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Linked {
    Done,
    /// The target does not exist, or is not from this restore.
    TargetIsMissing,
}

pub(super) fn link(shared: &Shared, link: &HardLink) -> io::Result<Linked> {
    let target = ConfinedPath::new(&link.target).map_err(|error| {
        let text = format!("its target is refused: {error}");
        io::Error::new(error.kind(), text)
    })?;
    let path = ConfinedPath::new(&link.path)?;
    let Some((target_parent, target_name)) = target.split() else {
        let text = "a hard link to the target directory";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    };
    // An older file has other content.
    if !shared.directories.created.has(target.as_bytes()) {
        return Ok(Linked::TargetIsMissing);
    }
    let from = match shared
        .directories
        .open(target_parent, MissingParents::Refuse)
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Linked::TargetIsMissing);
        }
        opened => opened?,
    };
    let found = rustix::fs::statat(&from, target_name, AtFlags::SYMLINK_NOFOLLOW);
    if found.is_err_and(|error| error == Errno::NOENT) {
        return Ok(Linked::TargetIsMissing);
    }
    if path == target {
        return Ok(Linked::Done);
    }
    let place = shared.place(&path)?;
    let create = |name: &OsStr| {
        let (to, flags) = (&place.directory, AtFlags::empty());
        rustix::fs::linkat(&from, target_name, to, name, flags)
    };
    let linked = shared.create(&place, create);
    let (_, placed) = linked.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::MLINK) => {
            let text = "the file system allows no further hard link to its target";
            io::Error::new(error.kind(), text)
        }
        Some(Errno::PERM) => {
            let text = "hard links to its target are not permitted here";
            io::Error::new(error.kind(), text)
        }
        _ => error,
    })?;
    shared.done(&path);
    (shared.directories.created).note(path.as_bytes(), placed)?;
    Ok(Linked::Done)
}
