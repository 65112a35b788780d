//! The atomics, locks and threads of the concurrent parts: the standard library's, or loom's.
//!
//! With `RUSTFLAGS="--cfg loom"` the same code runs in loom, which tries every interleaving that the C11 memory
//! model allows (Norris and Demsky, "CDSChecker", OOPSLA 2013). What is imported from here can be modelled.

#[cfg(all(loom, test))]
mod models;
mod short_lock;

use std::sync::PoisonError;

pub use short_lock::{ShortGuard, ShortLock};

#[cfg(loom)]
pub use loom::{
    sync::{Condvar, Mutex, MutexGuard, atomic, atomic::fence},
    thread,
};

#[cfg(not(loom))]
pub use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic, atomic::fence},
    thread,
};

/// A value alone on its cache lines: two of 64 bytes, since processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Locks. Poison is passed over: under the locks of the runtime's own protocols nothing foreign runs, and plain data is valid at every point.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `condvar`; see [`lock`] for poison.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
