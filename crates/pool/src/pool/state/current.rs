//! The worker that the calling thread is.
//!
//! `unsafe`: a thread-local pointer to the worker's own state, which is on the worker's stack.
//! [`run_as`] sets it for the duration of a call and clears it afterwards, also when unwinding.
//! [`with_current`] lends a reference to a closure on the same thread, which runs inside that call.
//! With a thread-local value that has a destructor, or an `Arc` in a `RefCell`, every checkpoint
//! would have to check its state.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::null;

use refrain_policy::topology::CpuId;

use super::context::WorkerContext;
use super::domain::Domain;
use super::view::View;

thread_local! {
    static CURRENT: Cell<*const WorkerContext> = const { Cell::new(null()) };
}

struct ClearOnDrop;

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        CURRENT.set(null());
    }
}

pub(crate) fn run_as<R>(context: &WorkerContext, body: impl FnOnce() -> R) -> R {
    CURRENT.set(context);
    let _clear = ClearOnDrop;
    body()
}

/// Calls `body` with the worker that this thread is; with `None` for other threads.
#[inline(always)]
pub(crate) fn with_current<R>(body: impl FnOnce(Option<&WorkerContext>) -> R) -> R {
    let context = CURRENT.get();
    // SAFETY: either null, or set by a `run_as` that this call is inside, and that borrows the
    // worker's state.
    body(unsafe { context.as_ref() })
}

/// The number of the calling thread among the workers of its pool; `None` for other threads. Flows
/// may be confined to workers by this number.
pub fn current_worker() -> Option<CpuId> {
    with_current(|worker| worker.map(|worker| worker.cpu))
}

impl Domain {
    /// Calls `body` with the calling worker if it belongs to this domain.
    pub(crate) fn with_caller<R>(&self, body: impl FnOnce(&WorkerContext) -> R) -> Option<R> {
        with_current(|worker| {
            let worker = worker?;
            std::ptr::eq(&raw const *worker.domain, self).then(|| body(worker))
        })
    }

    /// The domain as the policy sees it now; for one of its workers, at the worker's last reading
    /// of the clock.
    pub(crate) fn view(&self) -> View<'_> {
        let last_ns = self.with_caller(WorkerContext::last_ns);
        self.view_at(last_ns.unwrap_or_else(|| self.now_ns()))
    }
}
