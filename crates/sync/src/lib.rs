#![doc = include_str!("../README.md")]
//!
//! # Models
//!
//! With `RUSTFLAGS="--cfg loom"` the same code runs under loom, which tries every interleaving that
//! the C11 memory model allows (Norris and Demsky, "CDSChecker", OOPSLA 2013). Concurrent code that
//! imports its primitives from here can be model-checked.

mod atomics;
pub mod clock;
mod futex;
#[cfg(all(loom, test))]
mod models;
#[cfg(not(loom))]
mod mutex;
/// The locks of code that no model explores.
pub mod plain {
    #[cfg(not(loom))]
    pub use super::mutex::{Condvar, Mutex, MutexGuard};
    #[cfg(loom)]
    pub use super::unexplored::{Condvar, Mutex, MutexGuard};
}
mod primitives;
#[cfg(not(loom))]
mod profile;
mod raw_mutex;
mod short_lock;
pub mod ticks;
#[cfg(loom)]
mod unexplored;

pub use atomics::{Padded, atomic, fence, thread};
pub use primitives::{Condvar, Mutex, MutexGuard, lock, try_lock, wait, wait_for};
#[cfg(not(loom))]
pub use profile::{LockProfile, LockProfiling, profile_locks, report};
pub use raw_mutex::{set_spins_max, spins_max};
pub use short_lock::{ShortGuard, ShortLock};
