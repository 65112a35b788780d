//! Timers: add and cancel in batches that are atomic, fire each exactly once, on the worker of one's choice.
//!
//! The Rust form of Control.Event and Control.Timeout (Haskell, 2008): there additions and cancellations are STM
//! actions, here they are a [`Transaction`] that commits under the locks of the workers it concerns, together with a
//! change of the caller's own. Per-worker timers with explicit migration are FreeBSD's callouts (callout(9)).
//!
//! The README beside this file tells states, protocol and why it is right. From below: `bucket`, `near` and `wheel`
//! order reminders, `shard` and `records` hold one worker's timers (all plain data), [`TimerSystem`] shares them. A thread that calls
//! [`TimerSystem::expire`] drives it: `refrain-pool` has one for its workers, and `TimerThread` for programs without a pool.

mod bucket;
pub mod clock;
mod held;
#[cfg(any(test, feature = "property"))]
mod naive;
mod near;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod records;
mod shard;
pub mod sync;
mod system;
pub mod ticks;
mod transaction;
mod wheel;

pub use system::{Notify, Sink, TimerSystem};
pub use transaction::{Committed, Reason, Refused, Transaction};

use records::Key;

/// "Never": the deadline that [`TimerSystem::next_ns`] names when nothing is pending.
pub const NEVER_NS: u64 = u64::MAX;

/// Names one timer of one [`TimerSystem`], for ever: no other timer of that system gets the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    /// The worker that keeps the record.
    worker: usize,
    key: Key,
}

/// A timer whose deadline has come. It has ended: its id finds nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired<P> {
    /// What [`TimerSystem::add`] gave.
    pub id: TimerId,
    /// When it should have fired.
    pub deadline_ns: u64,
    /// What was added.
    pub payload: P,
}

/// The deadline `delay` from `now_ns`; stops at [`NEVER_NS`].
pub fn deadline_after(now_ns: u64, delay: std::time::Duration) -> u64 {
    let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    now_ns.saturating_add(delay_ns)
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
