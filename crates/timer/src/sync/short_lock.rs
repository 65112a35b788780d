//! A lock for sections of some ten instructions: one read-modify-write to take it, a plain store to let it go.
//!
//! A mutex that sleepers wait for in the kernel has to ask, when it is let go, whether there are any, and that is a second read-modify-write: 17 ns
//! for both on the virtual machine where this was measured, 8 for one. Here nobody is told; who waits looks again, by itself: it
//! spins for some microseconds, lets others have the processor a few times, then sleeps in steps that grow. So nobody who
//! waits can be forgotten, and a holder whom the kernel has stopped gets the processor back from those who wait for it. What it costs: beside such a
//! holder a waiter comes up to [`SLEEP_MAX`] late. So it is for what is held shortly and contended seldom, and never while foreign code
//! runs (but for a batch of timers, whose caller changes its own state under it).
//!
//! `unsafe`: the value lies in an `UnsafeCell`, and only a guard reaches it. There is one guard at a time, because a guard is made by whoever sets the
//! [`Flag`] and clears it when it goes; `models.rs` has all interleavings of that. The safe twin is the standard library's mutex, measured above;
//! loom's stands in for it in the models of what is built upon this.

#![allow(unsafe_code)]

use std::time::Duration;

use super::atomic::{AtomicBool, Ordering};
use super::thread;

/// Rounds of spinning before a waiter lets go of its processor, each twice as long as the one before: 2048 spins of some 12 ns in all.
const SPIN_ROUNDS: u32 = if cfg!(loom) { 0 } else { 11 };
/// Times it then offers the processor to others of its kind.
const YIELDS: u32 = 4;
/// Its first sleep, and its longest.
const SLEEP: Duration = Duration::from_micros(20);
const SLEEP_MAX: Duration = Duration::from_micros(320);

/// Whether the lock is held. What happened before [`Flag::clear`] happened before the [`Flag::set`] that follows.
#[derive(Debug, Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    #[inline(always)]
    pub(super) fn try_set(&self) -> bool {
        // An exchange without comparison saves 2 ns; but one that fails writes, and then loom does not come to an end.
        let set = self
            .0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        set.is_ok()
    }

    #[inline(always)]
    pub(super) fn set(&self) {
        if !self.try_set() {
            self.wait();
        }
    }

    #[inline(always)]
    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Looks before it tries: the line stays shared while there is nothing to win.
    fn try_set_if_clear(&self) -> bool {
        !self.0.load(Ordering::Relaxed) && self.try_set()
    }

    #[cold]
    fn wait(&self) {
        for round in 0..SPIN_ROUNDS {
            (0..1 << round).for_each(|_| std::hint::spin_loop());
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

/// Loom has no time: to it a sleep is a turn of the others.
#[cfg(loom)]
fn sleep(_: Duration) {
    thread::yield_now();
}

#[cfg(not(loom))]
mod imp {
    use std::cell::UnsafeCell;
    use std::ops::{Deref, DerefMut};

    use super::Flag;

    /// See the head of the file. No poison: its sections leave plain data valid at every point.
    #[derive(Default)]
    pub struct ShortLock<T> {
        flag: Flag,
        value: UnsafeCell<T>,
    }

    // SAFETY: as a mutex: the value is reached by one thread at a time, and so moves between threads.
    unsafe impl<T: Send> Sync for ShortLock<T> {}

    /// The lock, held.
    pub struct ShortGuard<'a, T> {
        lock: &'a ShortLock<T>,
        /// As the standard library's: stays on its thread, and is `Sync` only where the value is.
        value: std::marker::PhantomData<(*const (), &'a mut T)>,
    }

    impl<T> ShortLock<T> {
        /// A free lock around `value`.
        pub fn new(value: T) -> ShortLock<T> {
            ShortLock {
                flag: Flag::default(),
                value: UnsafeCell::new(value),
            }
        }

        /// Waits for the lock and holds it until the guard is dropped.
        #[inline(always)]
        pub fn lock(&self) -> ShortGuard<'_, T> {
            self.flag.set();
            self.held()
        }

        /// Holds the lock if nobody else does.
        #[inline(always)]
        pub fn try_lock(&self) -> Option<ShortGuard<'_, T>> {
            self.flag.try_set().then(|| self.held())
        }

        /// The guard of whoever has just set the flag.
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
            // SAFETY: this guard's flag is set, so there is no other guard; its own `&mut` excludes this `&`.
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for ShortGuard<'_, T> {
        #[inline(always)]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: this guard's flag is set, so there is no other guard, and this one is borrowed alone.
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

/// To the models of others: loom's mutex. It has no waits that loom would have to try.
#[cfg(loom)]
mod imp {
    use loom::sync::{Mutex, MutexGuard};

    /// See the head of the file.
    #[derive(Default)]
    pub struct ShortLock<T>(Mutex<T>);
    /// The lock, held.
    pub type ShortGuard<'a, T> = MutexGuard<'a, T>;

    impl<T> ShortLock<T> {
        /// A free lock around `value`.
        pub fn new(value: T) -> ShortLock<T> {
            ShortLock(Mutex::new(value))
        }

        /// Waits for the lock and holds it until the guard is dropped.
        pub fn lock(&self) -> ShortGuard<'_, T> {
            super::super::lock(&self.0)
        }

        /// Holds the lock if nobody else does.
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
    fn one_at_a_time_and_nobody_is_forgotten() {
        let lock = ShortLock::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..20_000_u64 {
                        let mut value = lock.lock();
                        // Two steps: an intruder between them would be seen in the sum.
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
    fn a_panic_lets_go() {
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
