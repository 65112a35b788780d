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

/// Whether this processor can wait for a write to a cache line (UMWAIT or MWAITX).
pub fn has_light_sleep() -> bool {
    light::LightSleep::detect().is_some()
}

#[cfg(all(test, loom))]
mod models;
