//! What was asked of one of several archives.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::statistics::Outcome;

/// The requests for one archive since the start, or the last reset of the statistics.
#[derive(Debug, Default)]
pub(crate) struct ArchiveCounts {
    calls: AtomicU64,
    errors: AtomicU64,
    bytes: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchiveRow {
    /// The name of the archive.
    pub name: Vec<u8>,
    /// The requests, those among them that failed, and the bytes that were delivered.
    pub calls: u64,
    pub errors: u64,
    pub bytes: u64,
    /// Whether it is open.
    pub is_open: bool,
}

impl ArchiveCounts {
    /// Counts a request.
    pub(crate) fn add(&self, outcome: Outcome) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Outcome::Bytes(bytes) => self.bytes.fetch_add(bytes, Ordering::Relaxed),
            Outcome::Failed => self.errors.fetch_add(1, Ordering::Relaxed),
        };
    }

    pub(crate) fn row(&self, name: &[u8], is_open: bool) -> ArchiveRow {
        ArchiveRow {
            name: name.to_vec(),
            calls: self.calls.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            is_open,
        }
    }

    pub(crate) fn reset(&self) {
        for counter in [&self.calls, &self.errors, &self.bytes] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}
