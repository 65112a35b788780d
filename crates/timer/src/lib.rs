#![doc = include_str!("../README.md")]
//!
//! # Source
//!
//! A [`TimerSystem`] holds the timers of a number of workers, each under a lock of its own, as
//! FreeBSD's callouts (callout(9)) are those of a processor. Any thread adds and cancels them.

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
