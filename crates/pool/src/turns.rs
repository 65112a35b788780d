//! Turns at something that one thread at a time does for all that need it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain_sync::plain::{Mutex, MutexGuard};

use crate::held_locks::{SharedHold, holds_lock, must_not_wait};
use crate::pool::state::current::current_worker;
use crate::wanted;

/// The shortest and the longest time between two looks at a turn that others have.
const LOOKS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(10)];

/// Hands out turns, one at a time. Unlike under a [`Lock`](crate::Lock), more urgent jobs run on
/// top of a job that has its turn, and a turn may take long.
///
/// So in two cases a job of a pool does not wait, and must do without. If a thread outside the pool
/// has the turn: that thread may wait for a job ([`compute`](crate::compute)), and if all workers
/// waited for such threads, the jobs would never run. If the job runs on top of one that has a turn
/// or holds [`Permits`](crate::Permits): those who wait for that one wait for it.
///
/// Work that may become unwanted ([`while_wanted`](crate::while_wanted)) asks while it waits.
///
/// Who holds a [`Lock`](crate::Lock) must not take a turn.
#[derive(Debug)]
pub struct Turns {
    taken: Mutex<()>,
    /// Whether a job of a pool has the turn.
    is_in_job: AtomicBool,
}

/// A turn, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn<'a> {
    is_in_job: &'a AtomicBool,
    _taken: MutexGuard<'a, ()>,
    _held: SharedHold,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.is_in_job.store(false, Ordering::Release);
    }
}

impl Default for Turns {
    fn default() -> Self {
        Turns {
            taken: Mutex::new(()),
            is_in_job: AtomicBool::new(false),
        }
    }
}

impl Turns {
    /// Waits until nobody else has a turn. `None`: this is a job that must not wait.
    pub fn take(&self) -> Option<Turn<'_>> {
        debug_assert!(
            !holds_lock(),
            "a job on top of one that has a turn may need the lock"
        );
        let is_in_job = current_worker().is_some();
        let free = if is_in_job || wanted::asks_in_waits() {
            self.taken.try_lock()
        } else {
            Some(self.taken.lock())
        };
        let taken = match free {
            Some(taken) => taken,
            None if !is_in_job => self.wait_and_ask(),
            None if self.is_in_job.load(Ordering::Acquire) && !must_not_wait() => self.taken.lock(),
            None => return None,
        };
        self.is_in_job.store(is_in_job, Ordering::Release);
        Some(Turn {
            is_in_job: &self.is_in_job,
            _taken: taken,
            _held: SharedHold::new(),
        })
    }

    /// Waits for a turn, and unwinds if it is no longer wanted.
    fn wait_and_ask(&self) -> MutexGuard<'_, ()> {
        let [mut pause, longest] = LOOKS;
        loop {
            std::thread::sleep(pause);
            wanted::pass_checkpoint();
            if let Some(taken) = self.taken.try_lock() {
                return taken;
            }
            pause = longest.min(pause * 2);
        }
    }
}
