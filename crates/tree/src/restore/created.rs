//! What a restore created, so that nothing else is replaced or removed.

use std::collections::{HashMap, HashSet};

use refrain_pool::Lock;

use super::metadata::Metadata;

/// What a restore knows about a directory.
#[derive(Debug, Default)]
pub(super) struct DirectoryRecord {
    /// Whether this restore created it.
    pub(super) is_created: bool,
    /// The metadata that it gets last; `None` if no entry gave any.
    pub(super) metadata: Option<Metadata>,
}

/// The entries that a restore created.
#[derive(Debug)]
pub(super) struct Created {
    /// Everything below the target, because the target is new.
    everything: bool,
    directories: Lock<HashMap<Box<[u8]>, DirectoryRecord>>,
    /// All but directories; only kept if the target existed.
    others: Lock<HashSet<Box<[u8]>>>,
}

impl Created {
    /// With `target_is_new`, whatever is found below the target was created by this restore.
    pub(super) fn new(target_is_new: bool) -> Created {
        let created = Created {
            everything: target_is_new,
            directories: Lock::default(),
            others: Lock::default(),
        };
        if target_is_new {
            created.note_directory(b"");
        }
        created
    }

    /// Notes a directory that was created.
    pub(super) fn note_directory(&self, path: &[u8]) {
        let mut directories = self.directories.lock();
        directories.entry(path.into()).or_default().is_created = true;
    }

    /// Notes what a directory gets last. The last call for a path counts.
    pub(super) fn note_metadata(&self, path: &[u8], metadata: Metadata) {
        let mut directories = self.directories.lock();
        directories.entry(path.into()).or_default().metadata = Some(metadata);
    }

    /// Notes an entry that is no directory.
    pub(super) fn note(&self, path: &[u8]) {
        if !self.everything {
            self.others.lock().insert(path.into());
        }
    }

    /// Whether an entry that is no directory was created by this restore, if it exists.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.everything || self.others.lock().contains(path)
    }

    /// Whether a directory was created by this restore, if it exists.
    pub(super) fn has_directory(&self, path: &[u8]) -> bool {
        self.everything || {
            let directories = self.directories.lock();
            directories.get(path).is_some_and(|found| found.is_created)
        }
    }

    pub(super) fn take_directories(&self) -> Vec<(Box<[u8]>, DirectoryRecord)> {
        std::mem::take(&mut *self.directories.lock())
            .into_iter()
            .collect()
    }

    pub(super) fn take_others(&self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut *self.others.lock())
            .into_iter()
            .collect()
    }
}
