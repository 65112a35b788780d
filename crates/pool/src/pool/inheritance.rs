//! Priority inheritance: a worker that holds a lock runs with the priority of the jobs that wait
//! for it.
//!
//! A job that holds a lock is always running: it is on its worker's stack, and nothing runs on top
//! of it (`worker/checkpoint.rs`). So it needs no better position in a queue. It needs two things.
//! First, no waking flow must be sent to its worker, which could not let it run: the worker
//! publishes the inherited key
//! ([`WorkerStatus::inherit`](super::state::worker_status::WorkerStatus::inherit)). Second, a
//! thread of the kernel's idle class has to leave that class until it releases the lock.

use super::state::context::WorkerContext;
use super::state::current::with_current;
use super::state::lock_owner::LockOwnerId;
use super::state::requests::INHERITED;
use crate::thread::class::KernelClass;
use crate::thread::kernel;

#[inline]
pub(crate) fn current_owner_id() -> LockOwnerId {
    with_current(|worker| worker.map_or(LockOwnerId::NONE, |worker| worker.owner_id))
}

/// Waits for a lock that `owner` holds, by calling `wait`, after passing the caller's priority to
/// the owner.
pub(crate) fn wait_for_owner<R>(owner: LockOwnerId, wait: impl FnOnce() -> R) -> R {
    with_current(|worker| {
        if let (Some(worker), Some(owner)) = (worker, owner.worker()) {
            owner.inherit(worker.status.running());
            let thread = owner.thread();
            if worker.domain.kernel_class() != KernelClass::Idle && kernel::is_idle_class(thread) {
                kernel::set_class(thread, KernelClass::Normal);
            }
            owner.requests.set(INHERITED);
        }
        wait()
    })
}

/// Ends the inheritance of the calling thread, which no longer holds a lock.
#[inline]
pub(crate) fn end_inheritance() {
    with_current(|worker| {
        if let Some(worker) = worker {
            worker.end_inheritance();
        }
    });
}

impl WorkerContext {
    /// Returns to the worker's own priority, if it has inherited one.
    #[inline]
    pub(crate) fn end_inheritance(&self) {
        if self.status.requests.bits() & INHERITED != 0 {
            self.restore_priority();
        }
    }

    fn restore_priority(&self) {
        self.status.requests.clear(INHERITED);
        let frame = self.frame.borrow();
        if frame.flow.is_some() {
            self.status.publish(frame.key);
        }
        if self.domain.kernel_class() == KernelClass::Idle {
            kernel::set_class(self.status.thread(), KernelClass::Idle);
        }
    }
}
