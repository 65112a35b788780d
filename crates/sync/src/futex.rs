//! A word that threads wait on until it changes (futex; Franke, Russell and Kirkwood, 2002).
//!
//! Where Linux does not offer it, and in models, a lock with a condition variable does the same.

use std::time::Duration;

use super::atomics::atomic::AtomicU32;

#[derive(Debug, Default)]
pub(super) struct Futex {
    pub word: AtomicU32,
    #[cfg(any(loom, not(target_os = "linux")))]
    waiters: portable::Waiters,
}

impl Futex {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Futex {
        Futex {
            word: AtomicU32::new(0),
            #[cfg(not(target_os = "linux"))]
            waiters: portable::Waiters::new(),
        }
    }

    /// Waits if the word has this value, until a thread wakes the caller or the time is over. May
    /// return earlier.
    pub(super) fn wait(&self, value: u32, time_max: Option<Duration>) {
        #[cfg(any(loom, not(target_os = "linux")))]
        self.waiters.wait(time_max, || {
            self.word.load(std::sync::atomic::Ordering::SeqCst) == value
        });
        #[cfg(all(not(loom), target_os = "linux"))]
        kernel::wait(&self.word, value, time_max);
    }

    pub(super) fn wake(&self, all: bool) {
        #[cfg(any(loom, not(target_os = "linux")))]
        self.waiters.wake(all);
        #[cfg(all(not(loom), target_os = "linux"))]
        kernel::wake(&self.word, all);
    }
}

#[cfg(all(not(loom), target_os = "linux"))]
mod kernel {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use rustix::thread::futex::{self, Flags};

    pub(super) fn wait(word: &AtomicU32, value: u32, time_max: Option<Duration>) {
        let time_max = time_max.map(|time| rustix::time::Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        // Every outcome makes the caller look at the word again.
        let _ = futex::wait(word, Flags::PRIVATE, value, time_max.as_ref());
    }

    pub(super) fn wake(word: &AtomicU32, all: bool) {
        let count = if all { i32::MAX as u32 } else { 1 };
        // It fails only for an address without memory.
        let _ = futex::wake(word, Flags::PRIVATE, count);
    }
}

#[cfg(any(loom, not(target_os = "linux")))]
mod portable {
    use std::time::Duration;

    #[cfg(loom)]
    use loom::sync::{Condvar, Mutex};
    use std::sync::PoisonError;
    #[cfg(not(loom))]
    use std::sync::{Condvar, Mutex};

    #[derive(Debug, Default)]
    pub(super) struct Waiters {
        checking: Mutex<()>,
        changed: Condvar,
    }

    impl Waiters {
        #[cfg(not(loom))]
        pub(super) const fn new() -> Waiters {
            Waiters {
                checking: Mutex::new(()),
                changed: Condvar::new(),
            }
        }

        /// A thread that changes the word needs the lock to wake others, so it cannot do both
        /// between the check and the wait.
        pub(super) fn wait(&self, time_max: Option<Duration>, must_wait: impl Fn() -> bool) {
            let checking = self.checking.lock().unwrap_or_else(PoisonError::into_inner);
            if must_wait() {
                match time_max {
                    None => drop(self.changed.wait(checking)),
                    Some(time) => drop(self.changed.wait_timeout(checking, time)),
                }
            }
        }

        pub(super) fn wake(&self, all: bool) {
            let _checking = self.checking.lock().unwrap_or_else(PoisonError::into_inner);
            if all { self.changed.notify_all() } else { self.changed.notify_one() }
        }
    }
}
