//! A mutex whose waits are counted, and whose holder inherits the priority of waiting threads.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

use refrain_sync::{Mutex, MutexGuard, try_lock};

use crate::held_locks;
use crate::pool::inheritance::{current_owner_id, end_inheritance, wait_for_owner};
use crate::pool::state::lock_owner::LockOwnerId;

/// Counts as a lock of the calling thread until it is dropped. It is not `Send`: it stays on its
/// thread.
#[derive(Debug)]
pub(crate) struct HeldLock(PhantomData<*const ()>);

impl HeldLock {
    pub(crate) fn new() -> Self {
        held_locks::add();
        HeldLock(PhantomData)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if held_locks::remove() {
            end_inheritance();
        }
    }
}

/// A mutex that a panicking holder does not poison.
///
/// For short critical sections over plain data only: the holder must leave the data valid at every
/// point where it could panic.
///
/// Priority inheritance: while a job of a pool waits, the job that holds the lock has at least the
/// waiting job's priority. Nothing less urgent preempts it, and its thread leaves the kernel's idle
/// class. See `pool/README.md`.
#[derive(Debug, Default)]
pub struct Lock<T> {
    inner: Mutex<T>,
    /// The [`LockOwnerId`] of the worker that took it last.
    owner: AtomicU32,
}

/// Releases the lock when it is dropped. See [`Lock::lock`].
#[derive(Debug)]
pub struct LockGuard<'a, T> {
    // Dropped in this order: the lock is released before the inheritance ends.
    inner: MutexGuard<'a, T>,
    _held: HeldLock,
}

impl<T> Lock<T> {
    /// An unlocked lock around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Lock {
            inner: Mutex::new(value),
            owner: AtomicU32::new(LockOwnerId::NONE.number()),
        }
    }

    /// An unlocked lock around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Lock {
            inner: Mutex::new(value),
            owner: AtomicU32::new(LockOwnerId::NONE.number()),
        }
    }

    /// Waits for the lock, and holds it until the guard is dropped.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> LockGuard<'_, T> {
        let inner = match try_lock(&self.inner) {
            Some(guard) => guard,
            None => self.wait(Location::caller()),
        };
        // Relaxed, and not cleared when the lock is released: a worker that holds no lock ends an
        // inheritance at its next checkpoint.
        self.owner
            .store(current_owner_id().number(), Ordering::Relaxed);
        LockGuard {
            inner,
            _held: HeldLock::new(),
        }
    }

    #[cold]
    fn wait(&self, place: &'static Location<'static>) -> MutexGuard<'_, T> {
        let owner = LockOwnerId::from_number(self.owner.load(Ordering::Relaxed));
        wait_for_owner(owner, || lock_contended(&self.inner, place))
    }
}

#[cfg(not(loom))]
fn lock_contended<'a, T>(
    mutex: &'a Mutex<T>,
    place: &'static Location<'static>,
) -> MutexGuard<'a, T> {
    mutex.lock_contended(place)
}

#[cfg(loom)]
fn lock_contended<'a, T>(mutex: &'a Mutex<T>, _: &'static Location<'static>) -> MutexGuard<'a, T> {
    refrain_sync::lock(mutex)
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
    use crate::held_locks::{all_held, holds_lock};

    #[test]
    fn a_holder_that_panics_does_not_poison_the_lock() {
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
    fn held_locks_are_counted() {
        let (one, two) = (Lock::new(()), Lock::new(()));
        assert_eq!((all_held(), holds_lock()), (0, false));
        let first = one.lock();
        let second = two.lock();
        assert_eq!((all_held(), holds_lock()), (2, true));
        drop(first);
        assert_eq!((all_held(), holds_lock()), (1, true));
        drop(second);
        assert_eq!((all_held(), holds_lock()), (0, false));
    }
}
