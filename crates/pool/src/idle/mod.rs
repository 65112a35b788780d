//! How a worker waits for work: spinning, in a light sleep, or parked.
//!
//! The README beside this file describes the states, the protocol and why no wake-up is lost.
//! [`Sleeper`] is the sleep of one worker. [`SpinPolicy`](refrain_policy::SpinPolicy) decides how
//! long the worker stays awake, and [`MachineLoad`] when it must not spin at all.

mod light;
mod load;
mod sleeper;

pub use load::{Load, MachineLoad};
pub use sleeper::{Sleeper, WakeCounts, WakeReason};

#[cfg(all(test, loom))]
mod models;
