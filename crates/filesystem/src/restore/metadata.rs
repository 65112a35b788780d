//! Sets owners, extended attributes, modes and times of restored entries.
//!
//! The order matters: changing the owner clears set-id bits and capabilities; access control lists
//! change the mode; a mode without write permission forbids user attributes; all of them may change
//! the time of a directory.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use refrain_storage::open_at;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::accounts::{Accounts, Ids};
use super::options::{OwnerPolicy, RestoreOptions};
use super::summary::{Omission, Tally, is_not_permitted};
use refrain_entries::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const MODE_BITS: u32 = 0o7777;
const PERMISSION_BITS: u32 = 0o777;

/// What an entry gets when it is complete.
#[derive(Debug, Clone)]
pub(super) struct Metadata {
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    pub(super) owner: Arc<Owner>,
    pub(super) modified: Timestamp,
    pub(super) attributes: Vec<ExtendedAttribute>,
}

impl Metadata {
    pub(super) fn from_entry(entry: &Entry) -> Metadata {
        Metadata {
            kind: entry.kind,
            mode: entry.mode & MODE_BITS,
            owner: Arc::clone(&entry.owner),
            modified: entry.modified,
            attributes: entry.attributes.clone(),
        }
    }

    /// The mode to create a file with: for most files it is already the final one.
    pub(super) fn first_mode(&self) -> Mode {
        let mode = self.mode & PERMISSION_BITS;
        // Setting attributes requires a writable file.
        let writable = if self.attributes.is_empty() { 0 } else { 0o600 };
        mode_of(mode | writable)
    }
}

/// Sets metadata as the options say, and counts what is not permitted.
#[derive(Debug)]
pub(super) struct Applier {
    options: RestoreOptions,
    accounts: Accounts,
    tally: Arc<Tally>,
}

#[derive(Debug, Clone, Copy)]
struct Ownership {
    user: u32,
    group: u32,
    wanted: Ids,
}

impl Ownership {
    fn has_user(self) -> bool {
        self.wanted.user == Some(self.user)
    }

    fn has_group(self) -> bool {
        self.wanted.group == Some(self.group)
    }

    fn is_as_wanted(self) -> bool {
        self.has_user() && self.has_group()
    }
}

impl Applier {
    pub(super) fn new(options: RestoreOptions, tally: Arc<Tally>) -> Applier {
        Applier {
            options,
            accounts: Accounts::new(options.numeric_owner),
            tally,
        }
    }

    /// Sets the metadata of an open file or directory. `found` is its state; `has_acl` tells
    /// whether it inherited an access control list from its directory. All steps are tried.
    ///
    /// # Errors
    ///
    /// Of the first step that fails.
    pub(super) fn apply(
        &self,
        file: BorrowedFd<'_>,
        found: &Stat,
        has_acl: bool,
        metadata: &Metadata,
    ) -> io::Result<()> {
        let change = |user, group| rustix::fs::fchown(file, user, group);
        let (ownership, owned) = self.set_owner(metadata, found, change);
        if has_acl {
            remove_acls(file);
        }
        let set = |name: &[u8], value: &[u8]| {
            rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())
        };
        let attributed = self.set_attributes(metadata, set);
        let mode = self.permitted_mode(metadata, ownership);
        let is_changed = has_acl || !metadata.attributes.is_empty();
        let moded = if is_changed || mode != found.st_mode & MODE_BITS {
            self.moded(rustix::fs::fchmod(file, mode_of(mode)))
        } else {
            Ok(())
        };
        let timed = timed(rustix::fs::futimens(file, &times(metadata.modified)));
        owned.and(attributed).and(moded).and(timed)
    }

    /// Sets the metadata of a symbolic link, device or FIFO, which is not opened.
    ///
    /// # Errors
    ///
    /// Of the first step that fails.
    pub(super) fn apply_to_name(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        has_acl: bool,
        metadata: &Metadata,
    ) -> io::Result<()> {
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let change = |user, group| {
            rustix::fs::chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)
        };
        let (ownership, owned) = self.set_owner(metadata, &found, change);
        let path = path_below(directory, name);
        if has_acl && metadata.kind != EntryKind::Symlink {
            let _ = rustix::fs::lremovexattr(path.as_slice(), ACCESS_ACL);
        }
        let set = |name: &[u8], value: &[u8]| {
            rustix::fs::lsetxattr(path.as_slice(), name, value, XattrFlags::empty())
        };
        let attributed = self.set_attributes(metadata, set);
        let moded = match metadata.kind {
            EntryKind::Symlink => Ok(()),
            _ => {
                let mode = self.permitted_mode(metadata, ownership);
                self.moded(set_name_mode(directory, name, mode_of(mode)))
            }
        };
        let times = times(metadata.modified);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let timed = timed(rustix::fs::utimensat(directory, name, &times, flags));
        owned.and(attributed).and(moded).and(timed)
    }

    fn set_owner(
        &self,
        metadata: &Metadata,
        found: &Stat,
        change: impl Fn(Option<Uid>, Option<Gid>) -> rustix::io::Result<()>,
    ) -> (Ownership, io::Result<()>) {
        let mut ownership = Ownership {
            user: found.st_uid,
            group: found.st_gid,
            wanted: self.accounts.ids(&metadata.owner),
        };
        if self.options.owners == OwnerPolicy::Current || ownership.is_as_wanted() {
            return (ownership, Ok(()));
        }
        let result = change_owner(&mut ownership, change);
        let result = match result {
            Err(error) if !is_not_permitted(error) => Err(error.into()),
            _ if ownership.is_as_wanted() => Ok(()),
            _ if self.options.owners == OwnerPolicy::Same => {
                let text = "its owner is not restored: not permitted";
                Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
            }
            _ => {
                self.tally.omission(Omission::Owner);
                Ok(())
            }
        };
        (ownership, result)
    }

    /// Sets access control lists last: they may take away the right to set the others.
    fn set_attributes(
        &self,
        metadata: &Metadata,
        set: impl Fn(&[u8], &[u8]) -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        if !self.options.keep_attributes {
            return Ok(());
        }
        let is_acl = |attribute: &&ExtendedAttribute| {
            [ACCESS_ACL, DEFAULT_ACL].contains(&attribute.name.as_slice())
        };
        let others = metadata.attributes.iter().filter(|item| !is_acl(item));
        let lists = metadata.attributes.iter().filter(is_acl);
        let mut result = Ok(());
        for attribute in others.chain(lists) {
            match set(&attribute.name, &attribute.value) {
                Ok(()) => {}
                Err(error) if is_not_permitted(error) => self.tally.omission(Omission::Attribute),
                Err(error) => result = result.and(Err(attribute_error(attribute, error))),
            }
        }
        result
    }

    /// The mode without set-id bits that would grant the rights of another owner.
    fn permitted_mode(&self, metadata: &Metadata, ownership: Ownership) -> u32 {
        let mut mode = metadata.mode;
        if !ownership.has_user() {
            mode &= !SET_USER_ID;
        }
        // On a directory the bit grants no rights.
        if !ownership.has_group() && metadata.kind != EntryKind::Directory {
            mode &= !SET_GROUP_ID;
        }
        if mode != metadata.mode {
            self.tally.omission(Omission::SetIdBit);
        }
        mode
    }

    fn moded(&self, result: rustix::io::Result<()>) -> io::Result<()> {
        match result {
            Err(error) if is_not_permitted(error) => {
                self.tally.omission(Omission::Mode);
                Ok(())
            }
            result => Ok(result?),
        }
    }
}

/// Changes user and group, or only one if the other is not permitted.
fn change_owner(
    ownership: &mut Ownership,
    change: impl Fn(Option<Uid>, Option<Gid>) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let user = ownership.wanted.user.filter(|_| !ownership.has_user());
    let group = ownership.wanted.group.filter(|_| !ownership.has_group());
    let mut attempt = |user: Option<u32>, group: Option<u32>| {
        change(user.map(Uid::from_raw), group.map(Gid::from_raw))?;
        ownership.user = user.unwrap_or(ownership.user);
        ownership.group = group.unwrap_or(ownership.group);
        Ok(())
    };
    match attempt(user, group) {
        Err(error) if is_not_permitted(error) && user.is_some() && group.is_some() => {
            attempt(None, group).or_else(|_| attempt(user, None))
        }
        result => result,
    }
}

fn attribute_error(attribute: &ExtendedAttribute, error: Errno) -> io::Error {
    let name = String::from_utf8_lossy(&attribute.name).into_owned();
    let bytes = attribute.value.len();
    match error {
        // This means that the value does not fit, not that the file system is full.
        Errno::NOSPC | Errno::TOOBIG | Errno::RANGE => {
            let text = format!("the file system cannot hold {name:?} with {bytes} bytes");
            io::Error::new(io::ErrorKind::Unsupported, text)
        }
        error => {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("attribute {name:?}: {error}"))
        }
    }
}

/// Sets the mode of a device or FIFO without opening it, which would have effects.
#[cfg(target_os = "linux")]
fn set_name_mode(directory: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open_at(directory, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::chmodat(rustix::fs::CWD, path, mode, AtFlags::empty()) {
        // Without /proc, this would follow a link that another process put here.
        Err(Errno::NOENT) => rustix::fs::chmodat(directory, name, mode, AtFlags::empty()),
        result => result,
    }
}

#[cfg(not(target_os = "linux"))]
fn set_name_mode(directory: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> rustix::io::Result<()> {
    rustix::fs::chmodat(directory, name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

/// A path for calls that do not take a directory.
fn path_below(directory: BorrowedFd<'_>, name: &OsStr) -> Vec<u8> {
    let directory = format!("/proc/self/fd/{}/", directory.as_raw_fd());
    [directory.as_bytes(), name.as_bytes()].concat()
}

/// Whether new entries in a directory inherit an access control list.
pub(super) fn has_default_acl(directory: BorrowedFd<'_>) -> bool {
    let mut nothing = [0_u8; 0];
    rustix::fs::fgetxattr(directory, DEFAULT_ACL, &mut nothing[..]).is_ok()
}

/// Removes the access control lists that a new entry inherited.
pub(super) fn remove_acls(file: BorrowedFd<'_>) {
    // Fails for entries without one.
    let _ = rustix::fs::fremovexattr(file, ACCESS_ACL);
    let _ = rustix::fs::fremovexattr(file, DEFAULT_ACL);
}

/// Ignores that some file systems store no times for some kinds of entries.
fn timed(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        result => Ok(result?),
    }
}

pub(super) fn mode_of(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as _)
}

/// Access and modification time. The access time is not archived, and the present time would differ
/// between runs.
fn times(modified: Timestamp) -> Timestamps {
    let time = Timespec {
        tv_sec: modified.seconds,
        tv_nsec: modified.nanoseconds.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// The mode of a directory without an entry, created as a parent: as the umask leaves it.
pub(super) fn new_directory_mode() -> u32 {
    const USUAL_MASK: u32 = 0o022;
    // Asking the system for the umask means changing it, for all threads.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
    PERMISSION_BITS & !mask.unwrap_or(USUAL_MASK)
}
