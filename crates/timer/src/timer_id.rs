//! Identifiers of timers, and the event of an expired timer.

use crate::records::RecordKey;

/// Identifies one timer of one [`TimerSystem`](crate::TimerSystem). Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    pub(crate) worker: usize,
    pub(crate) key: RecordKey,
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
