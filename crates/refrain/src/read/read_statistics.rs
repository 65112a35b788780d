//! Counts what reads found in memory and what they had to decode.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the reads of an opened archive found in memory and what they decoded, since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadStatistics {
    /// Bytes delivered from blocks; fills need none.
    pub delivered_bytes: u64,
    /// How often a needed block was in memory, or being decoded by another reader.
    pub hits: u64,
    /// How often a needed block was not in memory.
    pub misses: u64,
    /// Bytes decoded.
    pub decoded_bytes: u64,
    /// Bytes of frames read from the source for that.
    pub source_bytes: u64,
    /// How often blocks were decoded ahead of reads.
    pub prefetches: u64,
}

impl ReadStatistics {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: ReadStatistics) -> ReadStatistics {
        ReadStatistics {
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            decoded_bytes: self.decoded_bytes + other.decoded_bytes,
            source_bytes: self.source_bytes + other.source_bytes,
            prefetches: self.prefetches + other.prefetches,
        }
    }
}

/// The counters behind [`ReadStatistics`].
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    pub delivered_bytes: AtomicU64,
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub decoded_bytes: AtomicU64,
    pub source_bytes: AtomicU64,
    pub prefetches: AtomicU64,
}

impl ReadCounters {
    pub(crate) fn snapshot(&self) -> ReadStatistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReadStatistics {
            delivered_bytes: load(&self.delivered_bytes),
            hits: load(&self.hits),
            misses: load(&self.misses),
            decoded_bytes: load(&self.decoded_bytes),
            source_bytes: load(&self.source_bytes),
            prefetches: load(&self.prefetches),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
