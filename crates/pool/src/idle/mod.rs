//! How a worker waits for work: spinning, in a light sleep, or parked.
//!
//! The README beside this file tells states, protocol and why no wake-up is lost. [`Sleeper`] is one worker's bed,
//! [`SpinPolicy`](refrain_policy::SpinPolicy) says how long it is worth to stay awake, [`MachineLoad`] when it is not at all.

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
