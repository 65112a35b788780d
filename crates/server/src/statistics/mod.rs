//! Counts a server's requests and their latencies by operation.
//!
//! Counting takes two clock readings and a few atomic additions. The table follows GlusterFS's
//! io-stats (calls, average, minimum, maximum), with percentiles from log-linear histograms
//! (HdrHistogram).

mod metric;

use std::sync::atomic::{AtomicU64, Ordering};

pub use refrain_pool::LatencyHistogram;
use refrain_pool::SharedHistogram;
use refrain_sync::clock::RealClock;

pub use metric::{Metric, MetricSource};

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// An operation of a handler.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Operation {
            $($(#[$doc])* $name,)*
        }

        impl Operation {
            /// All operations.
            pub const ALL: &'static [Operation] = &[$(Operation::$name),*];

            /// The name in tables and metrics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Operation::$name => $text,)*
                }
            }
        }
    };
}

operations! {
    /// A read of an NBD client.
    NbdRead "nbd_read",
    /// A query of an NBD client about holes.
    NbdBlockStatus "nbd_block_status",
    /// A request of an NBD client to prefetch.
    NbdCache "nbd_cache",
    /// A lookup of a name in a mounted file system.
    FuseLookup "fuse_lookup",
    /// The attributes of a file in a mounted file system.
    FuseAttributes "fuse_getattr",
    /// A part of a directory listing in a mounted file system.
    FuseReadDirectory "fuse_readdir",
    /// A read of a file in a mounted file system.
    FuseRead "fuse_read",
    /// A file of a mounted file system put into the kernel's cache before it was requested.
    FuseStore "fuse_store",
    /// Any other operation of a mounted file system.
    FuseOther "fuse_other",
    /// A GET request for content, with its reply.
    HttpGet "http_get",
    /// A HEAD request.
    HttpHead "http_head",
    /// A request for a directory page, metrics and the like.
    HttpPage "http_page",
    /// A request for a frame of the archive.
    HttpFrame "http_frame",
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// This many bytes were delivered.
    Bytes(u64),
    /// The client got an error.
    Failed,
}

#[derive(Debug, Default)]
struct Counters {
    times: SharedHistogram,
    errors: AtomicU64,
    bytes: AtomicU64,
}

/// The statistics of a server.
#[derive(Debug)]
pub struct Statistics {
    clock: RealClock,
    counters: Vec<Counters>,
    reset_ns: AtomicU64,
}

/// The counters of one operation since the last reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationStatistics {
    /// The operation.
    pub operation: Operation,
    /// The latencies of its calls, including failed ones.
    pub times: LatencyHistogram,
    /// The calls that failed.
    pub errors: u64,
    /// The bytes that were delivered.
    pub bytes: u64,
}

impl Statistics {
    /// Starts with zero counts.
    pub fn new() -> Statistics {
        Statistics {
            clock: RealClock::new(),
            counters: Operation::ALL.iter().map(|_| Counters::default()).collect(),
            reset_ns: AtomicU64::new(0),
        }
    }

    /// The present time for [`Statistics::record`], in nanoseconds since the server's start.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Counts a call that began at `started_ns`.
    pub fn record(&self, operation: Operation, started_ns: u64, outcome: Outcome) {
        let counters = &self.counters[operation as usize];
        let elapsed_ns = self.now_ns().saturating_sub(started_ns);
        counters.times.add(elapsed_ns);
        match outcome {
            Outcome::Bytes(bytes) => counters.bytes.fetch_add(bytes, Ordering::Relaxed),
            Outcome::Failed => counters.errors.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// The time since the last reset, or since the start, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        (self.now_ns()).saturating_sub(self.reset_ns.load(Ordering::Relaxed))
    }

    /// The counters of every operation, including unused ones.
    pub fn snapshot(&self) -> Vec<OperationStatistics> {
        let operations = Operation::ALL.iter().zip(&self.counters);
        let row = |(&operation, counters): (&Operation, &Counters)| OperationStatistics {
            operation,
            times: counters.times.snapshot(),
            errors: counters.errors.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
        };
        operations.map(row).collect()
    }

    /// Resets all counters. A concurrent call may be counted in part.
    pub fn reset(&self) {
        self.reset_ns.store(self.now_ns(), Ordering::Relaxed);
        for counters in &self.counters {
            counters.times.reset();
            counters.errors.store(0, Ordering::Relaxed);
            counters.bytes.store(0, Ordering::Relaxed);
        }
    }
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_bytes_and_errors_are_counted_until_the_reset() {
        let statistics = Statistics::new();
        for outcome in [Outcome::Bytes(10), Outcome::Bytes(5), Outcome::Failed] {
            statistics.record(Operation::HttpGet, statistics.now_ns(), outcome);
        }
        let of = |operation: Operation| statistics.snapshot().swap_remove(operation as usize);
        let row = of(Operation::HttpGet);
        assert_eq!(row.operation, Operation::HttpGet);
        assert_eq!((row.times.count(), row.errors, row.bytes), (3, 1, 15));
        assert_eq!(of(Operation::NbdRead).times.count(), 0);
        statistics.reset();
        let row = of(Operation::HttpGet);
        assert_eq!((row.times.count(), row.errors, row.bytes), (0, 0, 0));
    }
}
