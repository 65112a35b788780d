//! Files whose data is complete, but not yet confirmed to be on the disk.
//!
//! Syncing each of many small files would take a turn of the disk for each. So files wait, and one
//! `syncfs` is for all of them. Then each is read back, and gets its name if it is as it was
//! written.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs::File;
use std::io;

use refrain_pool::Lock;
use refrain_storage::ReadBack;
use rustix::process::{Resource, getrlimit};

/// How many files wait at most. Each has a descriptor, of which the process may have few.
const FILES_MAX: u64 = 128;
const DESCRIPTOR_SHARE: u64 = 8;

/// How much data waits at most, so that disks are busy while more arrives.
const BYTES_MAX: u64 = 64 << 20;

/// A file that waits.
pub(super) trait Unconfirmed: Debug + Send {
    /// The file.
    fn file(&self) -> &File;

    /// The file system that it is on.
    fn device(&self) -> u64;

    /// The length of the file.
    fn size_bytes(&self) -> u64;

    /// Reads it back, and gives it its name if that shows what was written. An error is recorded
    /// as a problem, and the file removed. Returns what was read.
    fn confirm(self: Box<Self>) -> ReadBack;

    /// Removes it, for this reason.
    fn refuse(self: Box<Self>, reason: io::Error);
}

#[derive(Debug, Default)]
struct Waiting {
    files: Vec<Box<dyn Unconfirmed>>,
    bytes: u64,
}

/// The files that wait.
#[derive(Debug)]
pub(super) struct UnconfirmedFiles {
    waiting: Lock<Waiting>,
    files_max: usize,
    read_back: Lock<ReadBack>,
}

impl UnconfirmedFiles {
    pub(super) fn new() -> UnconfirmedFiles {
        let descriptors = getrlimit(Resource::Nofile).current;
        let files_max = descriptors.map_or(FILES_MAX, |count| count / DESCRIPTOR_SHARE);
        UnconfirmedFiles {
            waiting: Lock::default(),
            files_max: files_max.clamp(1, FILES_MAX) as usize,
            read_back: Lock::default(),
        }
    }

    /// Adds a file. If enough wait, they are confirmed on this thread.
    pub(super) fn add(&self, file: Box<dyn Unconfirmed>) {
        let full = {
            let mut waiting = self.waiting.lock();
            waiting.bytes = waiting.bytes.saturating_add(file.size_bytes());
            waiting.files.push(file);
            let is_full = waiting.files.len() >= self.files_max || waiting.bytes >= BYTES_MAX;
            is_full.then(|| std::mem::take(&mut *waiting))
        };
        if let Some(full) = full {
            self.confirm(full.files);
        }
    }

    /// Confirms what waits.
    pub(super) fn confirm_rest(&self) {
        self.confirm(self.take());
    }

    /// Removes and returns what waits.
    pub(super) fn take(&self) -> Vec<Box<dyn Unconfirmed>> {
        std::mem::take(&mut *self.waiting.lock()).files
    }

    /// What was read back so far.
    pub(super) fn read_back(&self) -> ReadBack {
        *self.read_back.lock()
    }

    fn confirm(&self, files: Vec<Box<dyn Unconfirmed>>) {
        if let Err(error) = sync(&files) {
            for file in files {
                let text = format!("cannot be synced: {error}");
                file.refuse(io::Error::new(error.kind(), text));
            }
            return;
        }
        let mut found = ReadBack::default();
        for file in files {
            found.add(file.confirm());
        }
        self.read_back.lock().add(found);
    }
}

#[cfg(target_os = "linux")]
fn sync(files: &[Box<dyn Unconfirmed>]) -> io::Result<()> {
    let mut synced = BTreeSet::new();
    for file in files.iter().filter(|file| synced.insert(file.device())) {
        rustix::fs::syncfs(file.file())?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn sync(files: &[Box<dyn Unconfirmed>]) -> io::Result<()> {
    files.iter().try_for_each(|file| file.file().sync_all())
}
