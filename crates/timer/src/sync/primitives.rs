//! The atomics, locks and threads of the standard library or of loom.

use std::sync::PoisonError;

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

/// A value on cache lines of its own: two lines of 64 bytes, because processors fetch lines in
/// pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Locks the mutex and ignores poison.
///
/// The callers' critical sections run no foreign code and leave plain data valid at every point.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `condvar` and ignores poison; see [`lock`].
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
