//! In models: locks that loom does not explore, with the interface of `mutex.rs`.

use std::sync::PoisonError;
use std::time::Duration;

pub use std::sync::MutexGuard;

/// See `mutex.rs`.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// See `mutex.rs`.
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

#[allow(missing_docs, reason = "as in mutex.rs")]
impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

#[allow(missing_docs, reason = "as in mutex.rs")]
impl Condvar {
    pub const fn new() -> Condvar {
        Condvar(std::sync::Condvar::new())
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        must_wait: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let guard = self.0.wait_while(guard, must_wait);
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait_while_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time_max: Duration,
        must_wait: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let waited = self.0.wait_timeout_while(guard, time_max, must_wait);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
