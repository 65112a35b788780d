//! The requests to a worker: one word of bits, read with one relaxed load at every checkpoint.

use refrain_sync::atomic::{AtomicU32, Ordering};

/// A flow that precedes the running one was queued for this worker.
pub(crate) const PREEMPT: u32 = 1 << 0;
/// A thread waits for a lock that this worker holds; the worker has inherited its priority.
pub(crate) const INHERITED: u32 = 1 << 1;

/// The requests to one worker. Aligned to two cache lines, since processors fetch lines in pairs.
///
/// The load of a checkpoint is relaxed: a set bit only says that the worker must look, and looking
/// late by the travel time of a cache line is early enough. Setting releases and clearing acquires,
/// so that a worker that clears a bit and then looks sees what was queued before the bit was set.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Requests {
    bits: AtomicU32,
}

impl Requests {
    /// The set bits: the one relaxed load of a checkpoint.
    #[inline(always)]
    pub(crate) fn bits(&self) -> u32 {
        self.bits.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, bits: u32) {
        self.bits.fetch_or(bits, Ordering::Release);
    }

    pub(crate) fn clear(&self, bits: u32) {
        self.bits.fetch_and(!bits, Ordering::Acquire);
    }
}
