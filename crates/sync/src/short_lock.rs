//! A lock for critical sections of about ten instructions: one read-modify-write to lock, a plain
//! store to unlock.
//!
//! A mutex whose waiters sleep in the kernel must check for waiters when it is unlocked, which
//! takes a second read-modify-write: 17 ns for both on the virtual machine where this was measured,
//! 8 ns for one. Here the unlocking thread wakes nobody. A waiting thread polls: it spins for some
//! microseconds, yields the processor a few times, then sleeps in growing steps. So no waiter can
//! be forgotten, and a preempted holder gets the processor from the waiters. The cost: behind such
//! a holder a waiter can be up to [`SLEEP_MAX`] late. The lock is therefore for short and rarely
//! contended sections, and never held while foreign code runs (except for a batch of timers, whose
//! caller changes its own state under it). The profile of locks counts the waits for it.
//!
//! `unsafe`: the value is in an `UnsafeCell` that only a guard accesses. There is one guard at a
//! time, because a guard is created by the thread that sets the [`Flag`], and clears it when it is
//! dropped; `models.rs` checks all interleavings. The safe alternative is the standard library's
//! mutex, measured above; in models of code that uses this lock, loom's mutex replaces it.

#![allow(unsafe_code)]

use std::time::Duration;

use super::atomics::atomic::{AtomicBool, Ordering};
use super::atomics::thread;

/// Rounds of spinning before a waiter yields its processor, each twice as long as the previous one:
/// 2048 spins of about 12 ns in all.
const SPIN_ROUNDS: u32 = if cfg!(loom) { 0 } else { 11 };
/// The number of yields after that.
const YIELDS: u32 = 4;
/// The first and the longest sleep.
const SLEEP: Duration = Duration::from_micros(20);
const SLEEP_MAX: Duration = Duration::from_micros(320);

/// Whether the lock is held. What precedes [`Flag::clear`] happens before the next [`Flag::set`].
#[derive(Debug, Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    #[inline(always)]
    pub(super) fn try_set(&self) -> bool {
        // An exchange without comparison would save 2 ns; but a failing one writes, and then loom
        // does not terminate.
        let set = self
            .0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        set.is_ok()
    }

    #[inline(always)]
    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Reads before it writes, so that the cache line remains shared while the flag is set.
    fn try_set_if_clear(&self) -> bool {
        !self.0.load(Ordering::Relaxed) && self.try_set()
    }

    /// Waits for the flag and sets it. Tries after each of these numbers of spins first.
    #[cold]
    pub(super) fn wait(&self, spins: &[u32]) {
        let rounds = (0..SPIN_ROUNDS).map(|round| 1 << round);
        for spins in spins.iter().copied().chain(rounds) {
            (0..spins).for_each(|_| std::hint::spin_loop());
            if self.try_set_if_clear() {
                return;
            }
        }
        for _ in 0..YIELDS {
            thread::yield_now();
            if self.try_set_if_clear() {
                return;
            }
        }
        let mut pause = SLEEP;
        while !self.try_set_if_clear() {
            sleep(pause);
            pause = (pause * 2).min(SLEEP_MAX);
        }
    }
}

#[cfg(not(loom))]
fn sleep(time: Duration) {
    thread::sleep(time);
}

/// Loom has no time; there a sleep yields to the other threads.
#[cfg(loom)]
fn sleep(_: Duration) {
    thread::yield_now();
}

#[cfg(not(loom))]
mod imp {
    use std::cell::UnsafeCell;
    use std::ops::{Deref, DerefMut};
    use std::panic::Location;

    use crate::profile::Wait;
    use crate::short_lock::Flag;

    /// See the head of the file. It is never poisoned: critical sections leave plain data valid at
    /// every point.
    #[derive(Default)]
    pub struct ShortLock<T> {
        flag: Flag,
        value: UnsafeCell<T>,
    }

    // SAFETY: as for a mutex: one thread at a time accesses the value, so it moves between threads.
    unsafe impl<T: Send> Sync for ShortLock<T> {}

    /// A held lock.
    pub struct ShortGuard<'a, T> {
        lock: &'a ShortLock<T>,
        /// Like the standard library's guard: not `Send`, and `Sync` only if the value is.
        value: std::marker::PhantomData<(*const (), &'a mut T)>,
    }

    impl<T> ShortLock<T> {
        /// Creates a free lock around `value`.
        pub fn new(value: T) -> ShortLock<T> {
            ShortLock {
                flag: Flag::default(),
                value: UnsafeCell::new(value),
            }
        }

        /// Waits for the lock. The guard releases it.
        #[inline(always)]
        #[track_caller]
        pub fn lock(&self) -> ShortGuard<'_, T> {
            self.lock_after(&[])
        }

        /// Like [`ShortLock::lock`], but if the lock is held, tries again only after each of these
        /// numbers of spins, of about 12 ns each, before it waits as usual.
        #[inline(always)]
        #[track_caller]
        pub fn lock_after(&self, spins: &[u32]) -> ShortGuard<'_, T> {
            if !self.flag.try_set() {
                self.wait(spins, Location::caller());
            }
            self.held()
        }

        #[cold]
        fn wait(&self, spins: &[u32], place: &'static Location<'static>) {
            let wait = Wait::begin();
            self.flag.wait(spins);
            // How long it is held is not known: the release is a plain store.
            let _ = wait.end(place, std::any::type_name::<T>);
        }

        /// Takes the lock if it is free.
        #[inline(always)]
        pub fn try_lock(&self) -> Option<ShortGuard<'_, T>> {
            self.flag.try_set().then(|| self.held())
        }

        /// Creates the guard. The caller must have set the flag.
        fn held(&self) -> ShortGuard<'_, T> {
            ShortGuard {
                lock: self,
                value: std::marker::PhantomData,
            }
        }
    }

    impl<T> Deref for ShortGuard<'_, T> {
        type Target = T;

        #[inline(always)]
        fn deref(&self) -> &T {
            // SAFETY: the flag is set by this guard, so there is no other guard, and a `&mut` from
            // this one excludes this `&`.
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for ShortGuard<'_, T> {
        #[inline(always)]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: the flag is set by this guard, so there is no other guard, and this one is
            // borrowed mutably.
            unsafe { &mut *self.lock.value.get() }
        }
    }

    impl<T> Drop for ShortGuard<'_, T> {
        #[inline(always)]
        fn drop(&mut self) {
            self.lock.flag.clear();
        }
    }
}

/// In models of code that uses the lock, loom's mutex replaces it: it has no waiting loops for loom
/// to explore.
#[cfg(loom)]
mod imp {
    use loom::sync::{Mutex, MutexGuard};

    /// See the head of the file.
    #[derive(Default)]
    pub struct ShortLock<T>(Mutex<T>);
    /// A held lock.
    pub type ShortGuard<'a, T> = MutexGuard<'a, T>;

    impl<T> ShortLock<T> {
        /// A free lock around `value`.
        pub fn new(value: T) -> ShortLock<T> {
            ShortLock(Mutex::new(value))
        }

        /// Waits for the lock. The guard releases it.
        pub fn lock(&self) -> ShortGuard<'_, T> {
            crate::primitives::lock(&self.0)
        }

        /// As [`ShortLock::lock`].
        pub fn lock_after(&self, _spins: &[u32]) -> ShortGuard<'_, T> {
            self.lock()
        }

        /// Takes the lock if it is free.
        pub fn try_lock(&self) -> Option<ShortGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}

pub use imp::{ShortGuard, ShortLock};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn excludes_other_threads_and_serves_every_waiter() {
        let lock = ShortLock::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..20_000_u64 {
                        let mut value = lock.lock();
                        // Two steps: an access between them would change the sum.
                        let before = *value;
                        if turn % 5_000 == 0 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        *value = std::hint::black_box(before) + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 80_000);
    }

    #[test]
    fn a_panic_releases_the_lock() {
        let lock = ShortLock::new(5);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = lock.lock();
            assert!(lock.try_lock().is_none());
            panic!("while it is held");
        }));
        assert!(caught.is_err());
        assert_eq!(lock.try_lock().map(|value| *value), Some(5));
    }
}
