//! What others ask of a worker: one word, read with one relaxed load at every checkpoint.

use refrain_timer::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A flow that goes before the running one waits for this worker.
pub(crate) const GIVE_WAY: u32 = 1 << 0;
/// The running flow has used its slice and others wait.
pub(crate) const SLICE_OVER: u32 = 1 << 1;
/// Somebody is idle: share a fork.
pub(crate) const BEAT: u32 = 1 << 2;
/// The worker holds a lock that somebody waits for, and was lent their urgency until it lets go.
pub(crate) const LENT: u32 = 1 << 3;
/// Every gap between checkpoints is measured. Stays set.
pub(crate) const MEASURE: u32 = 1 << 4;

/// The word of one worker, on cache lines of its own (two: processors fetch lines in pairs).
///
/// The load of a checkpoint is relaxed: the word says "look", and a look that is late by the time a cache line takes to travel is early
/// enough. Setting releases and clearing acquires, so that a worker that clears a bit and then looks sees what the asker queued before it
/// asked.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Signal {
    word: AtomicU32,
    /// When the oldest request that was not answered yet came, in the pool's nanoseconds; 0 when there is none.
    asked_ns: AtomicU64,
}

impl Signal {
    /// The bits that are set. The one relaxed load of a checkpoint.
    #[inline(always)]
    pub(crate) fn word(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    /// Sets `bits`; true if they were not all set already.
    pub(crate) fn set(&self, bits: u32) -> bool {
        self.word.fetch_or(bits, Ordering::Release) & bits != bits
    }

    /// Clears `bits`.
    pub(crate) fn clear(&self, bits: u32) {
        self.word.fetch_and(!bits, Ordering::Acquire);
    }

    /// Asks the worker to look at its queue at its next checkpoint.
    pub(crate) fn ask(&self, bits: u32, now_ns: u64) {
        // The first asker's time counts. It is there before the bit, so that the answer to the bit takes it away: a time that stayed
        // would be counted for a later request.
        let _ =
            self.asked_ns
                .compare_exchange(0, now_ns.max(1), Ordering::Relaxed, Ordering::Relaxed);
        self.set(bits);
    }

    /// Answers: clears `bits`; the time of the oldest request, if there was one.
    pub(crate) fn answer(&self, bits: u32) -> Option<u64> {
        self.clear(bits);
        let asked_ns = self.asked_ns.swap(0, Ordering::Relaxed);
        (asked_ns != 0).then_some(asked_ns)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_requests_counts() {
        let signal = Signal::default();
        assert_eq!(signal.word(), 0);
        signal.ask(GIVE_WAY, 5);
        signal.ask(GIVE_WAY, 9);
        signal.ask(SLICE_OVER, 11);
        assert_eq!(signal.word(), GIVE_WAY | SLICE_OVER);
        assert_eq!(signal.answer(GIVE_WAY | SLICE_OVER), Some(5));
        assert_eq!(signal.word(), 0);
        assert_eq!(signal.answer(GIVE_WAY), None);
    }

    #[test]
    fn bits_that_stay_are_not_answered_away() {
        let signal = Signal::default();
        assert!(signal.set(MEASURE));
        assert!(!signal.set(MEASURE));
        signal.ask(GIVE_WAY, 0);
        assert_eq!(signal.answer(GIVE_WAY), Some(1));
        assert_eq!(signal.word(), MEASURE);
    }
}
