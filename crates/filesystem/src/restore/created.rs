//! Records what a restore created, so that nothing else is replaced or removed.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::Lock;
use refrain_storage::ScratchFile;

use super::metadata::Metadata;
use super::path_log::PathLog;

/// Paths are remembered in this many groups, each with its own lock.
const SHARDS: usize = 16;

/// The most memory that a remembered path takes: a hash, in a table that has just doubled.
const HASH_BYTES: u64 = 21;

/// Remembered paths may take 1/4 of the memory budget.
const SHARE: u64 = 4;

/// What a restore knows about a path at its end.
#[derive(Debug, Default)]
pub(super) struct PathRecord {
    pub(super) is_created_directory: bool,
    /// Whether it was created where nothing existed.
    pub(super) is_new: bool,
    /// The metadata that a directory gets last; `None` if no entry gave any.
    pub(super) metadata: Option<Metadata>,
}

/// Notes about a path, each one byte before its content.
const NEW_DIRECTORY: u8 = 0;
const REPLACING_DIRECTORY: u8 = 1;
const METADATA: u8 = 2;
const NEW_OTHER: u8 = 3;

#[derive(Debug)]
pub(super) struct Created {
    /// Set if the target is new: then everything below it was created.
    everything: bool,
    /// Where the temporary file of the log is created.
    target: OwnedFd,
    log: Lock<PathLog>,
    /// Hashes of the paths, kept only if the target existed. Two paths of a tree of a million
    /// collide with a probability of 3 in 10⁸.
    known: [Lock<HashSet<u64>>; SHARDS],
    hasher: RandomState,
    known_count: AtomicU64,
    known_max: u64,
}

/// How an entry was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// Where nothing existed.
    New,
    /// Replacing another entry. If the restore fails, the new one stays.
    Replacing,
}

impl Created {
    /// If `target_is_new`, everything below the target was created by this restore.
    pub(super) fn new(target: OwnedFd, target_is_new: bool, memory_bytes: u64) -> Created {
        let created = Created {
            everything: target_is_new,
            target,
            log: Lock::default(),
            known: std::array::from_fn(|_| Lock::default()),
            hasher: RandomState::new(),
            known_count: AtomicU64::new(0),
            known_max: memory_bytes / SHARE / HASH_BYTES,
        };
        if target_is_new {
            created.add(b"", &[NEW_DIRECTORY]);
        }
        created
    }

    /// Notes a directory that was created.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if no more paths can be remembered.
    pub(super) fn note_directory(&self, path: &[u8], placed: Placed) -> io::Result<()> {
        self.add(
            path,
            &[match placed {
                Placed::New => NEW_DIRECTORY,
                Placed::Replacing => REPLACING_DIRECTORY,
            }],
        );
        self.remember(path, true)
    }

    /// Notes what a directory gets last. The last call for a path wins.
    pub(super) fn note_metadata(&self, path: &[u8], metadata: &Metadata) {
        let mut note = vec![METADATA];
        metadata.write_to(&mut note);
        self.add(path, &note);
    }

    /// Notes an entry that is not a directory.
    ///
    /// # Errors
    ///
    /// As [`note_directory`](Created::note_directory).
    pub(super) fn note(&self, path: &[u8], placed: Placed) -> io::Result<()> {
        if self.everything {
            return Ok(());
        }
        // If it replaces an entry of this restore, that one was noted before.
        if placed == Placed::New {
            self.add(path, &[NEW_OTHER]);
        }
        self.remember(path, false)
    }

    /// Whether this restore created the entry, which is not a directory, if it exists.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.everything || self.knows(path, false)
    }

    /// Whether this restore created the directory, if it exists.
    pub(super) fn has_directory(&self, path: &[u8]) -> bool {
        self.everything || self.knows(path, true)
    }

    /// Passes on all notes, deepest paths first.
    ///
    /// # Errors
    ///
    /// If the temporary file of the notes cannot be read or written.
    pub(super) fn drain(&self, mut each: impl FnMut(&[u8], PathRecord)) -> io::Result<()> {
        let log = std::mem::take(&mut *self.log.lock());
        let mut present: Option<(Vec<u8>, PathRecord)> = None;
        log.drain(&mut |path, note| {
            let is_same = present.as_ref().is_some_and(|(found, _)| found == path);
            if !is_same && let Some((path, record)) = present.take() {
                each(&path, record);
            }
            let (_, record) = present.get_or_insert_with(|| (path.to_vec(), PathRecord::default()));
            match note.split_first() {
                Some((&NEW_DIRECTORY, _)) => {
                    record.is_created_directory = true;
                    record.is_new = true;
                }
                Some((&REPLACING_DIRECTORY, _)) => record.is_created_directory = true,
                Some((&NEW_OTHER, _)) => record.is_new = true,
                Some((_, metadata)) => record.metadata = Metadata::read_from(metadata),
                None => {}
            }
        })?;
        if let Some((path, record)) = present {
            each(&path, record);
        }
        Ok(())
    }

    fn add(&self, path: &[u8], note: &[u8]) {
        let create = || ScratchFile::create_in(self.target.as_fd());
        self.log.lock().add(path, note, create);
    }

    fn shard(&self, path: &[u8], is_directory: bool) -> (Option<&Lock<HashSet<u64>>>, u64) {
        let hash = self.hasher.hash_one((path, is_directory));
        (self.known.get((hash % SHARDS as u64) as usize), hash)
    }

    fn knows(&self, path: &[u8], is_directory: bool) -> bool {
        let (shard, hash) = self.shard(path, is_directory);
        shard.is_some_and(|shard| shard.lock().contains(&hash))
    }

    fn remember(&self, path: &[u8], is_directory: bool) -> io::Result<()> {
        if self.everything {
            return Ok(());
        }
        let (shard, hash) = self.shard(path, is_directory);
        if !shard.is_some_and(|shard| shard.lock().insert(hash)) {
            return Ok(());
        }
        if self.known_count.fetch_add(1, Ordering::Relaxed) < self.known_max {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::OutOfMemory, TOO_MANY))
        }
    }
}

const TOO_MANY: &str = "more entries than the memory of this run can tell from those that existed \
                        here: restore into a new directory, or allow more memory";
