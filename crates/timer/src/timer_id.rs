//! Identifiers of timers, and the event of an expired timer.

use crate::records::RecordKey;

/// Identifies one timer of one [`TimerSystem`](crate::TimerSystem). Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    pub(crate) worker: usize,
    pub(crate) key: RecordKey,
    /// Here and not only in the record, so that a cancellation finds the timer's bucket before the
    /// record has come from memory.
    ///
    /// Processors overlap the cache misses of several cancellations, unless an address depends on
    /// what was just written: behind the lock, reading it again waits until all earlier writes have
    /// reached the cache. Hence the three words of an id are read before the lock, the free list
    /// has no `Option`, and rare cases are functions of their own.
    pub(crate) deadline_ns: u64,
}

/// A timer that has expired. Its id is invalid from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired<P> {
    /// The id that [`TimerSystem::add`](crate::TimerSystem::add) returned.
    pub id: TimerId,
    /// When the timer was due.
    pub deadline_ns: u64,
    /// The payload that was added.
    pub payload: P,
}
