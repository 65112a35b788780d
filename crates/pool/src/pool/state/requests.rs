//! The requests to a worker: one word of bits, read with one relaxed load at every checkpoint.

use refrain_sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A flow that precedes the running one was queued for this worker.
pub(crate) const PREEMPT: u32 = 1 << 0;
/// A thread waits for a lock that this worker holds; the worker has inherited its priority.
pub(crate) const INHERITED: u32 = 1 << 1;
/// Every gap between checkpoints is measured. Never cleared.
pub(crate) const MEASURE: u32 = 1 << 2;

/// The requests to one worker. Aligned to two cache lines, since processors fetch lines in pairs.
///
/// The load of a checkpoint is relaxed: a set bit only says that the worker must look, and looking
/// late by the travel time of a cache line is early enough. Setting releases and clearing acquires,
/// so that a worker that clears a bit and then looks sees what was queued before the bit was set.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Requests {
    bits: AtomicU32,
    /// The time of the oldest unacknowledged request, by the pool's clock; 0 when there is none.
    requested_ns: AtomicU64,
}

impl Requests {
    /// The set bits: the one relaxed load of a checkpoint.
    #[inline(always)]
    pub(crate) fn bits(&self) -> u32 {
        self.bits.load(Ordering::Relaxed)
    }

    /// Sets `bits`; returns whether one of them was clear.
    pub(crate) fn set(&self, bits: u32) -> bool {
        self.bits.fetch_or(bits, Ordering::Release) & bits != bits
    }

    pub(crate) fn clear(&self, bits: u32) {
        self.bits.fetch_and(!bits, Ordering::Acquire);
    }

    /// Asks the worker to look at its queue at its next checkpoint.
    pub(crate) fn request(&self, bits: u32, now_ns: u64) {
        // The time of the first request counts. It is stored before the bit, so that acknowledging
        // the bit removes it: a time that remained would be counted for a later request.
        let _ = self.requested_ns.compare_exchange(
            0,
            now_ns.max(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        self.set(bits);
    }

    /// Clears `bits`; returns the time of the oldest request, if there was one.
    pub(crate) fn acknowledge(&self, bits: u32) -> Option<u64> {
        self.clear(bits);
        let requested_ns = self.requested_ns.swap(0, Ordering::Relaxed);
        (requested_ns != 0).then_some(requested_ns)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_first_request_counts() {
        let requests = Requests::default();
        assert_eq!(requests.bits(), 0);
        requests.request(PREEMPT, 5);
        requests.request(PREEMPT, 9);
        assert_eq!(requests.bits(), PREEMPT);
        assert_eq!(requests.acknowledge(PREEMPT), Some(5));
        assert_eq!(requests.bits(), 0);
        assert_eq!(requests.acknowledge(PREEMPT), None);
    }

    #[test]
    fn an_acknowledgement_clears_only_the_bits_it_names() {
        let requests = Requests::default();
        assert!(requests.set(MEASURE));
        assert!(!requests.set(MEASURE));
        requests.request(PREEMPT, 0);
        assert_eq!(requests.acknowledge(PREEMPT), Some(1));
        assert_eq!(requests.bits(), MEASURE);
    }
}
