//! Threads: how they are started, and the state that each sets for itself.
//!
//! In the kernel, a new thread inherits scheduling class, nice value, processors and signal mask
//! from the thread that starts it. Here threads start with the work, so any thread may start them,
//! including one of the idle class. Therefore every thread sets its state itself ([`settings`]).

pub(crate) mod class;
pub(crate) mod detached;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub(crate) mod kernel;
#[cfg(target_os = "linux")]
mod linux;
pub(crate) mod settings;
pub(crate) mod start;
