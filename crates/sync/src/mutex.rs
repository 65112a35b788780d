//! The mutex and the condition variable of the project.
//!
//! They spin before they sleep (`raw_mutex.rs`), are not poisoned by a panic, and can be profiled
//! (`profile/`): by the place where they are locked and the type of what they guard.
//!
//! `unsafe`: a value is in an `UnsafeCell` that only guards access. A guard exists while its thread
//! holds the raw lock, so there is one at a time. `models.rs` checks the raw lock in all
//! interleavings; in models of code that uses these locks, loom's replace them.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::futex::Futex;
use super::profile::{self, Hold, Wait};
use super::raw_mutex::RawMutex;
use crate::clock::{Clock, RealClock};

/// A mutual exclusion lock. See the head of the file.
#[derive(Default)]
pub struct Mutex<T> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time accesses the value, so it moves between threads.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// A held [`Mutex`]. Released when dropped.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    hold: Option<Hold>,
    /// Not `Send`: the recorded hold belongs to the thread. `Sync` only if the value is.
    value: PhantomData<(*const (), &'a mut T)>,
}

// SAFETY: a thread with a reference to the guard only gets references to the value.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            raw: RawMutex::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_contended(Location::caller()),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        // A closure would have its own location.
        let place = Location::caller();
        self.raw.try_lock().then(|| MutexGuard {
            mutex: self,
            hold: profile::uncontended(place, std::any::type_name::<T>),
            value: PhantomData,
        })
    }

    /// Waits for a lock that was found held, on behalf of the code at `place`.
    #[cold]
    pub fn lock_contended(&self, place: &'static Location<'static>) -> MutexGuard<'_, T> {
        let wait = Wait::begin();
        self.raw.lock_contended();
        MutexGuard {
            mutex: self,
            hold: wait.end(place, std::any::type_name::<T>),
            value: PhantomData,
        }
    }

    /// Returns the value of a lock that nobody else can reach.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so there is no other guard, and a `&mut` from this one
        // excludes this `&`.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock, so there is no other guard, and this one is borrowed
        // mutably.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.mutex.raw.unlock();
        // After the release, so that nobody waits for the bookkeeping.
        profile::released(self.hold);
    }
}

/// Lets threads that hold a [`Mutex`] wait for a change of its value.
#[derive(Debug, Default)]
pub struct Condvar {
    /// Counts notifications.
    news: Futex,
    /// The threads that wait, or are about to.
    waiting: AtomicU32,
}

impl Condvar {
    /// A condition that nobody waits for.
    pub const fn new() -> Condvar {
        Condvar {
            news: Futex::new(),
            waiting: AtomicU32::new(0),
        }
    }

    /// Releases the lock, waits for a notification, and takes the lock again. May return without
    /// one.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.wait_until(guard, None)
    }

    /// [`Condvar::wait`] for at most this time.
    #[track_caller]
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time_max: Duration,
    ) -> MutexGuard<'a, T> {
        self.wait_until(guard, Some(time_max))
    }

    #[track_caller]
    fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time_max: Option<Duration>,
    ) -> MutexGuard<'a, T> {
        let mutex = guard.mutex;
        // Under the lock: a thread that changes the value after this sees that somebody waits.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let news = self.news.word.load(Ordering::SeqCst);
        drop(guard);
        self.news.wait(news, time_max);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        mutex.lock()
    }

    /// Waits until a condition no longer holds.
    #[track_caller]
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut must_wait: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while must_wait(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// Waits until a condition no longer holds, for at most this time.
    #[track_caller]
    pub fn wait_while_for<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time_max: Duration,
        mut must_wait: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let clock = RealClock::new();
        while must_wait(&mut guard) {
            let left = time_max.saturating_sub(clock.now());
            if left.is_zero() {
                break;
            }
            guard = self.wait_for(guard, left);
        }
        guard
    }

    /// Wakes one of the threads that wait.
    pub fn notify_one(&self) {
        self.notify(false);
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.notify(true);
    }

    fn notify(&self, all: bool) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.news.word.fetch_add(1, Ordering::SeqCst);
            self.news.wake(all);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => f.debug_tuple("Mutex").field(&*value).finish(),
            None => f.write_str("Mutex(held)"),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LockProfile, LockProfiling, ShortLock, profile_locks, report};

    #[test]
    fn a_mutex_excludes_and_sums_are_whole() {
        let mutex = Mutex::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..30_000_u64 {
                        let mut value = mutex.lock();
                        // Two steps: an access between them would change the sum.
                        let before = *value;
                        if turn % 10_000 == 0 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        *value = std::hint::black_box(before) + 1;
                    }
                });
            }
        });
        assert_eq!(mutex.into_inner(), 120_000);
    }

    #[test]
    fn a_panic_releases_the_lock() {
        let mutex = Mutex::new(5);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = mutex.lock();
            assert!(mutex.try_lock().is_none());
            panic!("while it is held");
        }));
        assert!(caught.is_err());
        assert_eq!(mutex.try_lock().map(|value| *value), Some(5));
    }

    #[test]
    fn every_number_passes_from_thread_to_thread() {
        let (cell, news) = (Mutex::new(None), Condvar::new());
        let sum = std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                let mut sum = 0;
                for _ in 0..5000 {
                    let mut full =
                        news.wait_while(cell.lock(), |cell: &mut Option<u64>| cell.is_none());
                    sum += full.take().unwrap();
                    drop(full);
                    news.notify_all();
                }
                sum
            });
            for number in 0..5000 {
                *news.wait_while(cell.lock(), |cell| cell.is_some()) = Some(number);
                news.notify_all();
            }
            taker.join().unwrap()
        });
        assert_eq!(sum, 4999 * 5000 / 2);
    }

    #[test]
    fn a_wait_ends_after_its_time() {
        let (mutex, news) = (Mutex::new(()), Condvar::new());
        let mut looks = 0;
        let must_wait = |(): &mut ()| {
            looks += 1;
            true
        };
        drop(news.wait_while_for(mutex.lock(), Duration::from_millis(5), must_wait));
        assert!(looks >= 2);
    }

    /// One test, because the profile covers the whole process; other tests' locks are elsewhere.
    #[test]
    fn the_profile_counts_by_place_and_mode() {
        struct Counted(u32);
        let mutex = Mutex::new(Counted(0));
        let at = |line: u32| -> Option<LockProfile> {
            let (rows, _) = report();
            rows.into_iter()
                .find(|row| row.line == line && row.name.ends_with("Counted"))
        };
        let use_once = || {
            mutex.lock().0 += 1;
            line!() - 1
        };
        let line = use_once();
        assert_eq!(at(line), None, "profiling is off");
        profile_locks(LockProfiling::Contested);
        use_once();
        assert_eq!(at(line), None, "it was free");
        profile_locks(LockProfiling::Full);
        for _ in 0..10 {
            use_once();
        }
        let full = at(line).unwrap();
        assert_eq!((full.acquired, full.contended, full.held), (10, 0, 10));
        assert!(full.file.ends_with("mutex.rs") && full.hold_ns >= full.hold_ns_max);
        profile_locks(LockProfiling::Contested);
        let contended_line = std::thread::scope(|scope| {
            let held = mutex.lock();
            let waiter = scope.spawn(|| {
                drop(mutex.lock());
                line!() - 1
            });
            std::thread::sleep(Duration::from_millis(20));
            drop(held);
            waiter.join().unwrap()
        });
        let short = ShortLock::new(Counted(0));
        let short_line = std::thread::scope(|scope| {
            let held = short.lock();
            let waiter = scope.spawn(|| {
                drop(short.lock());
                line!() - 1
            });
            std::thread::sleep(Duration::from_millis(20));
            drop(held);
            waiter.join().unwrap()
        });
        profile_locks(LockProfiling::Off);
        let short = at(short_line).unwrap();
        assert_eq!((short.acquired, short.contended, short.held), (1, 1, 0));
        // The thread has ended: its counts are still there.
        let contended = at(contended_line).unwrap();
        assert_eq!((contended.acquired, contended.contended), (1, 1));
        assert!(contended.wait_ns >= 1_000_000 && contended.wait_ns == contended.wait_ns_max);
    }
}
