//! The project's mutex and condition variable, or loom's.

#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard};

#[cfg(not(loom))]
pub use super::mutex::{Condvar, Mutex, MutexGuard};

/// Waits for the mutex. Ignores poison from a panicked holder: critical sections run no foreign
/// code and leave plain data valid at every point.
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

/// Waits for `condvar` for at most this time; see [`lock`].
#[track_caller]
pub fn wait_for<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    time_max: std::time::Duration,
) -> MutexGuard<'a, T> {
    #[cfg(loom)]
    return match condvar.wait_timeout(guard, time_max) {
        Ok((guard, _)) => guard,
        Err(poisoned) => poisoned.into_inner().0,
    };
    #[cfg(not(loom))]
    condvar.wait_for(guard, time_max)
}

/// Waits for `condvar`; see [`lock`].
#[track_caller]
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    #[cfg(loom)]
    return (condvar.wait(guard)).unwrap_or_else(std::sync::PoisonError::into_inner);
    #[cfg(not(loom))]
    condvar.wait(guard)
}
