//! What a node was asked and did.

use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::SharedHistogram;

/// What a node was asked and did, since the client began.
#[derive(Debug, Default)]
pub struct NodeCounts {
    /// How long its replies to reads took.
    pub times: SharedHistogram,
    /// Values that it had.
    pub hits: AtomicU64,
    /// Bytes of these.
    pub bytes: AtomicU64,
    /// Requests to it because another node was late.
    pub hedges: AtomicU64,
    /// Of these, those that it answered first.
    pub won: AtomicU64,
    /// Connections that were refused or broke.
    pub errors: AtomicU64,
    /// Requests that were given up.
    pub timeouts: AtomicU64,
    /// Values that were not what was stored.
    pub corrupt: AtomicU64,
}

impl NodeCounts {
    /// Sets all to zero. What is counted at the same time may get lost.
    pub(super) fn reset(&self) {
        self.times.reset();
        let counters = [
            &self.hits,
            &self.bytes,
            &self.hedges,
            &self.won,
            &self.errors,
            &self.timeouts,
            &self.corrupt,
        ];
        (counters.iter()).for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}
