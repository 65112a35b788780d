//! Badges: numbers by which whoever waits for a lock finds the worker that holds it, to lend it urgency.
//!
//! A job that holds a lock is always running: it lies on its worker's stack, and nothing runs on top of it (`Local::answer`). So it needs no
//! better place in a queue. What it needs is (1) that no waking flow is sent to its worker, which could not give way, and that is what
//! the lent key in [`Worker::lend`] says, and (2) if its thread is of the kernel's idle class, to be taken out of it until it lets go.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::local::here;
use super::signal::LENT;
use super::system::{self, KernelClass};
use super::worker::Worker;

/// Workers by badge, less one. Looked at only by those who have to wait anyway.
static BADGES: Mutex<Vec<Weak<Worker>>> = Mutex::new(Vec::new());

/// A worker's badge, for as long as it lives.
pub(crate) struct Badge(pub(crate) u32);

impl Badge {
    pub(crate) fn new(worker: &Arc<Worker>) -> Badge {
        let mut badges = BADGES.lock().unwrap_or_else(PoisonError::into_inner);
        let free = badges.iter().position(|held| held.strong_count() == 0);
        let index = free.unwrap_or_else(|| {
            badges.push(Weak::new());
            badges.len() - 1
        });
        badges[index] = Arc::downgrade(worker);
        // Threads are far fewer than 2^32.
        Badge(u32::try_from(index + 1).unwrap_or(0))
    }
}

fn worker_of(badge: u32) -> Option<Arc<Worker>> {
    let index = usize::try_from(badge).ok()?.checked_sub(1)?;
    let badges = BADGES.lock().unwrap_or_else(PoisonError::into_inner);
    badges.get(index)?.upgrade()
}

/// The badge of the calling worker; 0 for other threads.
#[inline]
pub(crate) fn mine() -> u32 {
    here(|local| local.map_or(0, |local| local.badge.0))
}

/// Waits for something that `holder` holds, by calling `wait`; lends it the caller's urgency before, and counts.
pub(crate) fn waiting<R>(holder: u32, wait: impl FnOnce() -> R) -> R {
    here(|local| {
        let Some(local) = local else {
            return wait();
        };
        if let Some(holder) = worker_of(holder) {
            holder.lend(local.worker.running());
            let thread = holder.thread();
            let is_raised = local.domain.kernel_class() != KernelClass::Idle
                && system::is_idle_class(thread)
                && system::set_class(thread, KernelClass::Normal);
            local.worker.counters.raised.add(u64::from(is_raised));
            holder.signal.set(LENT);
        }
        let start_ns = local.domain.now_ns();
        let result = wait();
        let waited_ns = local.domain.now_ns().saturating_sub(start_ns);
        local.worker.counters.lock_waits.add(1);
        local.worker.counters.lock_wait_ns.add(waited_ns);
        result
    })
}

/// The calling thread holds nothing any more: loans end.
#[inline]
pub(crate) fn give_back() {
    here(|local| {
        if let Some(local) = local
            && local.worker.signal.word() & LENT != 0
        {
            local.give_back();
        }
    });
}
