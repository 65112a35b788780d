//! Mutual exclusion, made here so that it can be counted in one place and so that holders are lent the urgency of those who wait.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, TryLockError};

use refrain_timer::sync::{Mutex, MutexGuard};

use crate::held_locks;
use crate::pool::inheritance::{current_owner_id, end_inheritance, wait_for_owner};
use crate::pool::state::lock_owner::LockOwnerId;

/// Counts as a lock of the calling thread until dropped; so it stays there (it is not `Send`).
#[derive(Debug)]
pub(crate) struct Holding(PhantomData<*const ()>);

impl Holding {
    pub(crate) fn new() -> Self {
        held_locks::add();
        Holding(PhantomData)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if held_locks::remove() == 0 {
            end_inheritance();
        }
    }
}

/// A mutex that a panicking holder does not poison.
///
/// For short critical sections over plain data only: whoever holds it must leave the data valid at
/// every point where it could panic.
///
/// Priority inheritance: a job of a pool that has to wait lends its urgency to the job that holds the lock, which is then not
/// preempted by anything less urgent, and runs in the kernel's usual class if its own was the idle one. See `pool/README.md`.
#[derive(Debug, Default)]
pub struct Lock<T> {
    inner: Mutex<T>,
    /// The badge of the worker that holds it; 0 when none does.
    holder: AtomicU32,
}

/// The lock, held. See [`Lock::lock`].
#[derive(Debug)]
pub struct LockGuard<'a, T> {
    // Dropped in this order: the lock is free before the loans are given back.
    inner: MutexGuard<'a, T>,
    _holding: Holding,
}

impl<T> Lock<T> {
    /// An open lock around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Lock {
            inner: Mutex::new(value),
            holder: AtomicU32::new(0),
        }
    }

    /// An open lock around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Lock {
            inner: Mutex::new(value),
            holder: AtomicU32::new(0),
        }
    }

    /// Waits for the lock and holds it until the guard is dropped.
    pub fn lock(&self) -> LockGuard<'_, T> {
        let inner = match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait(),
        };
        // Relaxed, and not taken away when the lock is free again: a loan to somebody who holds nothing any more is given back at once.
        self.holder
            .store(current_owner_id().number(), Ordering::Relaxed);
        LockGuard {
            inner,
            _holding: Holding::new(),
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        let owner = LockOwnerId::from_number(self.holder.load(Ordering::Relaxed));
        wait_for_owner(owner, || {
            self.inner.lock().unwrap_or_else(PoisonError::into_inner)
        })
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held_locks::locks_held;

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

    #[test]
    fn every_way_of_holding_is_counted_and_ends() {
        let (one, two) = (Lock::new(()), Lock::new(()));
        assert_eq!(locks_held(), 0);
        let first = one.lock();
        let second = two.lock();
        assert_eq!(locks_held(), 2);
        drop(first);
        assert_eq!(locks_held(), 1);
        drop(second);
        assert_eq!(locks_held(), 0);
    }
}
