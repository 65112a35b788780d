//! How long reads of an archive's source take.

use std::sync::atomic::{AtomicU64, Ordering};

use refrain_sync::clock::RealClock;

/// The time that reads of a source have taken since it was last asked for.
#[derive(Debug, Default)]
pub struct SourceWaits {
    clock: RealClock,
    reads: AtomicU64,
    total_ns: AtomicU64,
}

impl SourceWaits {
    /// Runs a read and adds its time.
    pub fn during<T>(&self, read: impl FnOnce() -> T) -> T {
        let start_ns = self.clock.now_ns();
        let result = read();
        self.add(self.clock.now_ns().saturating_sub(start_ns));
        result
    }

    /// Adds a read of this length.
    pub(crate) fn add(&self, duration_ns: u64) {
        self.total_ns.fetch_add(duration_ns, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// The mean time of the reads since this was last called, in nanoseconds; `None` if there were
    /// none.
    pub fn take_mean_ns(&self) -> Option<u64> {
        let reads = self.reads.swap(0, Ordering::Relaxed);
        let total_ns = self.total_ns.swap(0, Ordering::Relaxed);
        total_ns.checked_div(reads)
    }
}
