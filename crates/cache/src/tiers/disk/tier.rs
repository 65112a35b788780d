//! The directory: what it is for, and who waits for whom.

use std::fmt;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refrain_pool::Event;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;

use super::eviction::Room;
use super::files::open_file;
use super::mirror::Mirror;
use super::names::{Names, Place};
use crate::key::Key;

/// Between two looks at how much there is, a process writes at most this share of the limit.
const UNSEEN_SHARE: u64 = 64;

/// A range of more than this share of the limit is not kept.
const RANGE_SHARE: u64 = 4;

/// How long a reader waits for another process that reads the same range, and how often it looks.
const FLIGHT_TRIES: u32 = 125;
const FLIGHT_AGAIN: Duration = Duration::from_millis(2);

/// Why a directory cannot be used.
#[derive(Debug)]
pub enum DiskError {
    /// It cannot be made, or no file in it.
    Io(PathBuf, io::Error),
    /// Its file system cannot make holes in files, so nothing could be given back.
    NoHoles(PathBuf),
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            DiskError::NoHoles(path) => write!(
                f,
                "{}: this file system cannot make holes in files (ext4, XFS, Btrfs and tmpfs can)",
                path.display()
            ),
        }
    }
}

impl std::error::Error for DiskError {}

/// A directory with what was read of archives, of a limited size.
pub struct DiskTier {
    directory: PathBuf,
    limit_bytes: u64,
    /// How much may be written before somebody looks how much there is.
    unseen_bytes: AtomicU64,
    room: Room,
    names: Names,
}

/// While it lives, no other process reads the same range, as far as they use this directory.
pub struct DiskFlight {
    _lock: File,
    /// Whether another process had it before.
    pub has_waited: bool,
}

impl DiskTier {
    /// Uses a directory, which is made if it is not there. It has at most `limit_bytes`, as far as
    /// no more than eight processes write to it.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn open(directory: &Path, limit_bytes: u64) -> Result<DiskTier, DiskError> {
        let refused = |error| DiskError::Io(directory.to_path_buf(), error);
        // What it has may be secret.
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(directory.join("flights")).map_err(refused)?;
        let eviction = open_file(&directory.join("lock")).map_err(refused)?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&eviction, hole, 0, 4096).map_err(|error| match error {
            Errno::OPNOTSUPP | Errno::NOSYS => DiskError::NoHoles(directory.to_path_buf()),
            error => refused(error.into()),
        })?;
        Ok(DiskTier {
            room: Room::new(directory, limit_bytes, eviction),
            names: Names::open(directory, limit_bytes).map_err(refused)?,
            directory: directory.to_path_buf(),
            limit_bytes,
            unseen_bytes: AtomicU64::new(0),
        })
    }

    /// What there is of the archive with this identity.
    ///
    /// # Errors
    /// From the operating system.
    pub fn mirror(&self, identity: &[u8; 32]) -> io::Result<Mirror> {
        let name: String = identity
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Mirror::open(&self.directory, &name)
    }

    /// A range that had the value of this name, in whatever archive.
    ///
    /// # Errors
    /// From the operating system.
    pub fn find(&self, name: &[u8; 16]) -> io::Result<Option<Place>> {
        self.names.find(name)
    }

    /// Notes that a range that was kept has the value of this name.
    ///
    /// # Errors
    /// From the operating system.
    pub fn note(&self, name: &[u8; 16], place: &Place) -> io::Result<()> {
        self.names.note(name, place)
    }

    /// Keeps a range, and returns whether it did: one that is large beside the limit, or comes
    /// while there is no room, is not kept.
    ///
    /// # Errors
    /// From the operating system.
    pub fn store(&self, mirror: &Mirror, key: &Key, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let length_bytes = bytes.len() as u64;
        if length_bytes > self.limit_bytes / RANGE_SHARE {
            return Ok(false);
        }
        let seen = |unseen: u64| unseen.checked_sub(length_bytes);
        let is_seen = (self.unseen_bytes)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, seen)
            .is_ok();
        if !is_seen {
            if !self.room.make(length_bytes)? {
                return Ok(false);
            }
            let share = self.limit_bytes / UNSEEN_SHARE;
            let unseen = share.saturating_sub(length_bytes);
            self.unseen_bytes.store(unseen, Ordering::Relaxed);
        }
        mirror.put(key, offset, bytes).map(|()| true)
    }

    /// Waits for other processes that read the value of a key, for some time. `None`: somebody has
    /// it for longer, or this cannot be known.
    pub fn flight(&self, key: &Key) -> Option<DiskFlight> {
        let name = format!("flights/{:03x}", key.number() >> 52);
        let lock = open_file(&self.directory.join(name)).ok()?;
        for tried in 0..FLIGHT_TRIES {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Some(DiskFlight {
                        _lock: lock,
                        has_waited: tried > 0,
                    });
                }
                Err(Errno::AGAIN | Errno::INTR) => {
                    Event::new().wait_for(FLIGHT_AGAIN);
                }
                Err(_) => return None,
            }
        }
        None
    }
}
