//! The atomics and threads of the standard library or of loom, and the project's locks or loom's.

#[cfg(loom)]
pub use loom::{
    sync::{Condvar, Mutex, MutexGuard, atomic, atomic::fence},
    thread,
};

#[cfg(not(loom))]
pub use std::{
    sync::{atomic, atomic::fence},
    thread,
};

#[cfg(not(loom))]
pub use super::mutex::{Condvar, Mutex, MutexGuard};

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

/// Waits for the mutex. A panic of an earlier holder does not matter: critical sections run no
/// foreign code and leave plain data valid at every point.
#[inline]
#[track_caller]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(loom)]
    return mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    #[cfg(not(loom))]
    mutex.lock()
}

/// Takes the mutex if it is free; see [`lock`].
#[inline]
#[track_caller]
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    #[cfg(loom)]
    return mutex.try_lock().ok();
    #[cfg(not(loom))]
    mutex.try_lock()
}

/// Waits for `condvar`; see [`lock`].
#[track_caller]
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    #[cfg(loom)]
    return (condvar.wait(guard)).unwrap_or_else(std::sync::PoisonError::into_inner);
    #[cfg(not(loom))]
    condvar.wait(guard)
}
