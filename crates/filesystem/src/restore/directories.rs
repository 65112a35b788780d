//! Open directories below the target, and their creation.
//!
//! Components are opened one at a time with `openat(O_NOFOLLOW)`, each relative to the one before.
//! So neither the archive (a link, then a file "below" it) nor another process (that replaces a
//! directory by a link) can lead out of the target, and paths may be longer than `PATH_MAX`.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_storage::open_at;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::created::{Created, Placed};
use super::directory::{Directory, NEW_DIRECTORY_MODE, already_exists};
use super::metadata::{has_default_acl, remove_acls};
use super::options::RestoreOptions;
use super::path::split_last;
use super::replace::replace_by_directory;

/// The flags that open a directory for listing, synchronizing and attributes.
pub(super) const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Directories are remembered in this many groups, each with its own lock.
const SHARDS: usize = 16;

/// The maximum of open directories in a group; 256 in all, a quarter of the usual limit.
const SHARD_DIRECTORIES_MAX: usize = 16;

/// How many parents are looked up among the open directories before all are opened.
const PARENTS_MAX: usize = 64;

const NOT_A_DIRECTORY: &str =
    "part of the path is not a directory (symbolic links are not followed)";

/// What to do about missing parent directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingParents {
    /// Create them.
    Create,
    /// Fail.
    Refuse,
}

#[derive(Debug)]
struct Remembered {
    hash: u64,
    path: Box<[u8]>,
    directory: Arc<Directory>,
    last_use: u64,
}

#[derive(Debug, Default)]
struct Shard {
    /// At most [`SHARD_DIRECTORIES_MAX`].
    directories: Vec<Remembered>,
    uses: u64,
}

#[derive(Debug)]
pub(super) struct Directories {
    target: Arc<Directory>,
    /// Whether to remove access control lists that new entries inherit from their directory.
    without_acls: bool,
    pub(super) created: Created,
    shards: [Lock<Shard>; SHARDS],
    hasher: RandomState,
    /// Held from creating a directory until it is noted.
    creating: Lock<()>,
}

impl Directories {
    /// `target` is the open target; `target_is_new` if this restore created it.
    ///
    /// # Errors
    ///
    /// If the process has run out of descriptors.
    pub(super) fn new(
        target: OwnedFd,
        target_is_new: bool,
        options: &RestoreOptions,
    ) -> io::Result<Directories> {
        let without_acls = options.keep_attributes;
        let gives_acl = without_acls && has_default_acl(target.as_fd());
        let created = Created::new(target.try_clone()?, target_is_new, options.memory_bytes);
        Ok(Directories {
            target: Arc::new(Directory::new(target, gives_acl)),
            without_acls,
            created,
            shards: std::array::from_fn(|_| Lock::default()),
            hasher: RandomState::new(),
            creating: Lock::default(),
        })
    }

    ///
    /// # Errors
    ///
    /// `NotADirectory` if part of the path is something else, such as a symbolic link.
    pub(super) fn open(&self, path: &[u8], missing: MissingParents) -> io::Result<Arc<Directory>> {
        let (mut opened, mut directory) = self.nearest(path);
        while opened.len() < path.len() {
            let start = opened.len() + usize::from(!opened.is_empty());
            let rest = path.get(start..).unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == b'/');
            let name = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
            opened = path.get(..start + name.len()).unwrap_or(path);
            let child = self.open_child(&directory, opened, OsStr::from_bytes(name), missing);
            directory = Arc::new(child?);
            self.remember(opened, &directory);
        }
        Ok(directory)
    }

    /// Creates the directory of an entry, or finds it. With `replace`, it may replace something
    /// that is not a directory.
    pub(super) fn create(&self, path: &[u8], replace: bool) -> io::Result<()> {
        if path.is_empty() {
            return Ok(());
        }
        let (parent_path, name) = split_last(path);
        let parent = self.open(parent_path, MissingParents::Create)?;
        let _creating = self.creating.lock();
        match self.create_child(&parent, path, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
        let found = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return Ok(());
        }
        if !replace && !self.created.has(path) {
            return Err(already_exists("is not a directory"));
        }
        replace_by_directory(&parent, name)?;
        self.created.note_directory(path, Placed::Replacing)?;
        Ok(self.remove_given_acls(&parent, name)?)
    }

    /// The longest part of a path whose directory is open, with that directory.
    fn nearest<'a>(&self, path: &'a [u8]) -> (&'a [u8], Arc<Directory>) {
        let mut part = path;
        for _ in 0..PARENTS_MAX {
            if part.is_empty() {
                break;
            }
            if let Some(directory) = self.remembered(part) {
                return (part, directory);
            }
            part = split_last(part).0;
        }
        (b"", Arc::clone(&self.target))
    }

    fn open_child(
        &self,
        parent: &Directory,
        path: &[u8],
        name: &OsStr,
        missing: MissingParents,
    ) -> io::Result<Directory> {
        let descriptor = match open_directory(parent, name) {
            Err(Errno::NOENT) if missing == MissingParents::Create => {
                let creating = self.creating.lock();
                match self.create_child(parent, path, name) {
                    // Another thread or process was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    created => created?,
                }
                drop(creating);
                open_directory(parent, name)
            }
            opened => opened,
        };
        let descriptor = descriptor.map_err(explained)?;
        let gives_acl = self.without_acls
            && !self.created.has_directory(path)
            && has_default_acl(descriptor.as_fd());
        Ok(Directory::new(descriptor, gives_acl))
    }

    /// Creates a directory and notes it. The lock `creating` must be held.
    fn create_child(&self, parent: &Directory, path: &[u8], name: &OsStr) -> io::Result<()> {
        rustix::fs::mkdirat(parent, name, NEW_DIRECTORY_MODE)?;
        self.created.note_directory(path, Placed::New)?;
        Ok(self.remove_given_acls(parent, name)?)
    }

    /// Removes the access control lists that a new directory inherited.
    fn remove_given_acls(&self, parent: &Directory, name: &OsStr) -> rustix::io::Result<()> {
        if parent.gives_acl {
            remove_acls(open_directory(parent, name)?.as_fd());
        }
        Ok(())
    }

    fn shard(&self, hash: u64) -> Option<&Lock<Shard>> {
        self.shards.get((hash % SHARDS as u64) as usize)
    }

    fn remembered(&self, path: &[u8]) -> Option<Arc<Directory>> {
        let hash = self.hasher.hash_one(path);
        let mut shard = self.shard(hash)?.lock();
        shard.uses += 1;
        let uses = shard.uses;
        let found = shard
            .directories
            .iter_mut()
            .find(|found| found.hash == hash && *found.path == *path)?;
        found.last_use = uses;
        Some(Arc::clone(&found.directory))
    }

    fn remember(&self, path: &[u8], directory: &Arc<Directory>) {
        let hash = self.hasher.hash_one(path);
        let Some(shard) = self.shard(hash) else {
            return;
        };
        let mut shard = shard.lock();
        if shard.directories.len() >= SHARD_DIRECTORIES_MAX {
            let ages = shard.directories.iter().enumerate();
            let oldest = ages.min_by_key(|(_, found)| found.last_use);
            if let Some((oldest, _)) = oldest {
                shard.directories.swap_remove(oldest);
            }
        }
        let remembered = Remembered {
            hash,
            path: path.into(),
            directory: Arc::clone(directory),
            last_use: shard.uses,
        };
        shard.directories.push(remembered);
    }
}

/// Opens a directory, even if the user may search but not list it.
fn open_directory(parent: &Directory, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    match open_at(parent, name, DIRECTORY_FLAGS, Mode::empty()) {
        #[cfg(target_os = "linux")]
        Err(Errno::ACCESS) => {
            let flags = DIRECTORY_FLAGS.union(OFlags::PATH);
            open_at(parent, name, flags, Mode::empty())
        }
        opened => opened,
    }
}

fn explained(error: Errno) -> io::Error {
    match error {
        Errno::NOTDIR | Errno::LOOP => {
            io::Error::new(io::ErrorKind::NotADirectory, NOT_A_DIRECTORY)
        }
        error => error.into(),
    }
}
