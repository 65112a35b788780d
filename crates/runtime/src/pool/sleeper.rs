//! How one worker goes to sleep and is woken: the word that decides whether a wake-up needs the kernel.
//!
//! ```text
//!            lie_down           fall_asleep
//!   AWAKE ─────────────▶ IDLE ──────────────▶ PARKED
//!     ▲                   │ rise / wake         │ wake (unparks)
//!     └───────────────────┴─────────────────────┘
//! ```
//!
//! The worker lies down, looks at the queues once more, spins, falls asleep. A waker queues first and then wakes. One of the two sees the
//! other (both do a sequentially consistent fence in between, see `idle.rs`), so no wake-up is lost. Waking a worker that still spins is
//! one exchange of a word and no system call.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, lock, thread};

const AWAKE: u32 = 0;
const IDLE: u32 = 1;
const PARKED: u32 = 2;

/// See the head of the file.
pub(crate) struct Sleeper {
    state: AtomicU32,
    thread: Mutex<Option<thread::Thread>>,
}

impl Default for Sleeper {
    fn default() -> Self {
        Sleeper {
            state: AtomicU32::new(AWAKE),
            thread: Mutex::new(None),
        }
    }
}

impl Sleeper {
    /// The calling thread is the one that sleeps here.
    pub(crate) fn move_in(&self) {
        *lock(&self.thread) = Some(thread::current());
    }

    /// The worker has found nothing and is about to look once more.
    pub(crate) fn lie_down(&self) {
        self.state.store(IDLE, Ordering::SeqCst);
    }

    /// The worker has found something after all.
    pub(crate) fn rise(&self) {
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Whether somebody has woken the worker since it lay down.
    pub(crate) fn is_woken(&self) -> bool {
        self.state.load(Ordering::Acquire) == AWAKE
    }

    /// Sleeps until somebody wakes it; at once if somebody has. Whether it really slept.
    pub(crate) fn fall_asleep(&self) -> bool {
        let parks = self
            .state
            .compare_exchange(IDLE, PARKED, Ordering::SeqCst, Ordering::SeqCst);
        if parks.is_err() {
            return false;
        }
        while !self.is_woken() {
            thread::park();
        }
        true
    }

    /// Wakes the worker; whether that took a system call.
    pub(crate) fn wake(&self) -> bool {
        if self.state.swap(AWAKE, Ordering::SeqCst) != PARKED {
            return false;
        }
        if let Some(thread) = &*lock(&self.thread) {
            thread.unpark();
        }
        true
    }
}
