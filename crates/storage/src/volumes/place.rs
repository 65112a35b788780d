//! What a folder of volumes can do, wherever it is.

use std::io;
use std::sync::Arc;

use super::layout::JoinedVolume;
use crate::sink::Sink;
use crate::source::Source;

/// A folder of files, or a prefix of objects, that are created and deleted, never changed.
pub trait VolumePlace: Send + Sync {
    /// The name of the place in messages.
    fn label(&self) -> &str;

    /// The first names, in order, that begin with `prefix`: at most `count_max`. None if there is
    /// no such place yet.
    ///
    /// # Errors
    /// From the system or the store.
    fn names(&self, prefix: &str, count_max: usize) -> io::Result<Vec<String>>;

    /// A whole small file.
    ///
    /// # Errors
    /// `NotFound`; `InvalidData` if it is longer than `bytes_max`; others.
    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// The bytes of volumes, one behind the other. They are opened when they are read: errors then
    /// name the one that is missing or has another length.
    ///
    /// # Errors
    /// Of preparing to read.
    fn joined(&self, volumes: Vec<JoinedVolume>) -> io::Result<Arc<dyn Source>>;

    /// Begins a volume with a name that nobody else chooses. It is there, and stored durably, when
    /// it is published.
    ///
    /// # Errors
    /// From the system or the store; `AlreadyExists`.
    fn create(&self, name: &str) -> io::Result<Box<dyn Sink>>;

    /// Creates a small file, whole and durably, unless there is one of this name.
    ///
    /// # Errors
    /// `AlreadyExists`: somebody else was first; others.
    fn create_alone(&self, name: &str, bytes: &[u8]) -> io::Result<Alone>;

    /// Deletes a file; it may be gone already.
    ///
    /// # Errors
    /// From the system or the store.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Keeps other writers on this machine out, where that is possible, as long as the lock exists.
    /// [`create_alone`](Self::create_alone) decides in any case.
    ///
    /// # Errors
    /// `WouldBlock`: there is another writer.
    fn lock(&self) -> io::Result<VolumeLock>;

    /// The largest volume that the place takes, in bytes.
    fn volume_bytes_max(&self) -> u64 {
        u64::MAX
    }

    /// Whether volumes can be read while they are written. Default: yes.
    fn reads_back(&self) -> bool {
        true
    }

    /// The device and inode of the folder, if it is one on this machine.
    fn file_id(&self) -> Option<(u64, u64)> {
        None
    }
}

/// How sure it is that nobody else created the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// The system or the store decides who is first.
    Certain,
    /// The store ignores conditions: there was no such file before, and this one is there now, but
    /// two writers at the same moment may both have found that.
    Likely,
}

/// Ends when it is dropped, and with the process.
#[derive(Debug, Default)]
#[must_use]
pub struct VolumeLock(Option<std::fs::File>);

impl VolumeLock {
    /// The lock of a file or folder.
    pub(crate) fn of(file: std::fs::File) -> VolumeLock {
        VolumeLock(Some(file))
    }

    /// Whether other writers on this machine are kept out.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }
}
