//! Mutual exclusion, made here so that later it can be profiled in one place.

use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// A mutex that a panicking holder does not poison.
///
/// For short critical sections over plain data only: whoever holds it must leave the data valid at
/// every point where it could panic.
#[derive(Debug, Default)]
pub struct Lock<T> {
    inner: Mutex<T>,
}

impl<T> Lock<T> {
    /// An open lock around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Lock {
            inner: Mutex::new(value),
        }
    }

    /// An open lock around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Lock {
            inner: Mutex::new(value),
        }
    }

    /// Waits for the lock and holds it until the guard is dropped.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_panicking_holder() {
        let lock = Lock::new(1);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut held = lock.lock();
            *held += 1;
            panic!("while held");
        }));
        assert!(result.is_err());
        assert_eq!(*lock.lock(), 2);
    }
}
