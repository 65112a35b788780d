//! Timers that are added and cancelled in atomic batches and fire exactly once.
//!
//! A [`TimerSystem`] holds the timers of a number of workers. It is the Rust form of Control.Event
//! and Control.Timeout (Haskell, 2008), whose additions and cancellations are STM actions. Here
//! they form a [`Transaction`], which commits under the locks of the workers concerned together
//! with a change of the caller's own state. Per-worker timers with explicit migration are FreeBSD's
//! callouts (callout(9)).
//!
//! The system has no thread: the callers of [`TimerSystem::expire`] drive it. `refrain-pool` does
//! so for its workers.
//!
//! `README.md` explains the states, the protocols and why they are correct.
//!
//! ```
//! use std::cell::RefCell;
//! use refrain_timer::{Expired, TimerSystem};
//!
//! // One worker that polls; times are nanoseconds of the caller's clock.
//! let timers = TimerSystem::new(1, ());
//! let timeout = timers.add(0, 5_000, "timeout");
//!
//! // Replaces the timer atomically: no thread sees none or both of the two.
//! let mut batch = timers.transaction();
//! batch.cancel(timeout).add(0, 9_000, "extended timeout");
//! assert!(batch.commit(|_ids| Ok::<(), ()>(())).is_ok());
//!
//! let fired = RefCell::new(Vec::new());
//! let sink = |_worker: usize, event: Expired<&'static str>| {
//!     fired.borrow_mut().push(event.payload);
//! };
//! timers.expire(0, 8_999, &sink);
//! assert!(fired.borrow().is_empty());
//! timers.expire(0, 9_000, &sink);
//! assert_eq!(*fired.borrow(), ["extended timeout"]);
//! ```

mod bucket;
mod callbacks;
mod current_tick;
mod deadline;
mod locked_shards;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod records;
#[cfg(any(test, feature = "property"))]
mod reference;
mod reminder;
mod shard;
mod system;
mod timer_id;
mod transaction;
mod wheel;
mod workers;

pub use callbacks::{Notify, Sink};
pub use deadline::{NEVER_NS, deadline_after};
pub use system::TimerSystem;
pub use timer_id::{Expired, TimerId};
pub use transaction::{AbortReason, Aborted, Committed, Transaction};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
