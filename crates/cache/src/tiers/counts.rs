//! What each tier was asked.

use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::{LatencyHistogram, SharedHistogram};

/// What a tier without nodes was asked.
#[derive(Debug, Default)]
pub struct TierCounts {
    times: SharedHistogram,
    hits: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    corrupt: AtomicU64,
}

impl TierCounts {
    /// Counts a call; `bytes` are those that it returned.
    pub(super) fn called(&self, time_ns: u64, bytes: Option<usize>) {
        self.times.add(time_ns);
        if let Some(bytes) = bytes {
            self.hits.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Counts an error.
    pub(super) fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a value that was not what belongs there.
    pub(super) fn corrupt(&self) {
        self.corrupt.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets all to zero. What is counted at the same time may get lost.
    pub(super) fn reset(&self) {
        self.times.reset();
        for counter in [&self.hits, &self.bytes, &self.errors, &self.corrupt] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn row(&self, tier: &'static str) -> TierRow {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TierRow {
            tier,
            node: None,
            times: self.times.snapshot(),
            hits: load(&self.hits),
            bytes: load(&self.bytes),
            errors: load(&self.errors),
            corrupt: load(&self.corrupt),
            hedges: 0,
            hedges_won: 0,
            timeouts: 0,
            state: None,
        }
    }
}

/// What a tier, or a node of it, was asked and did.
#[derive(Debug, Clone, PartialEq)]
pub struct TierRow {
    /// `disk`, `shared` or `origin`.
    pub tier: &'static str,
    /// The name of the node, of a shared tier.
    pub node: Option<String>,
    /// The latencies of its replies.
    pub times: LatencyHistogram,
    /// Ranges that it had.
    pub hits: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Calls that failed; of a node, connections that were refused or broke as well.
    pub errors: u64,
    /// Values that were not what was stored.
    pub corrupt: u64,
    /// Requests to the node because another one was late.
    pub hedges: u64,
    /// Of these, those that it answered first.
    pub hedges_won: u64,
    /// Requests that were given up.
    pub timeouts: u64,
    /// The state of the node's breaker: `closed` if it is asked, else `open` or `probing`.
    pub state: Option<&'static str>,
}
