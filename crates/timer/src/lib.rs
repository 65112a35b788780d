//! Timers of several workers, which fire exactly once or are cancelled.
//!
//! A [`TimerSystem`] holds the timers of a number of workers, each under a lock of its own, as
//! FreeBSD's callouts (callout(9)) are those of a processor. Any thread adds and cancels them.
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
//! assert_eq!(timers.cancel(timeout), Some("timeout"));
//! assert_eq!(timers.cancel(timeout), None);
//! timers.add(0, 9_000, "extended timeout");
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
#[cfg(any(test, feature = "property"))]
pub mod property;
mod records;
#[cfg(any(test, feature = "property"))]
mod reference;
mod reminder;
mod shard;
mod system;
mod timer_id;
mod wheel;
mod workers;

pub use callbacks::{Notify, Sink};
pub use deadline::{NEVER_NS, deadline_after};
pub use system::TimerSystem;
pub use timer_id::{Expired, TimerId};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
