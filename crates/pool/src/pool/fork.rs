//! Forks: the second halves of joins, on the stack of the joiner, until an idle worker takes one.
//!
//! Heartbeat scheduling (Acar, Charguéraud, Guatto, Rainey, Sieczkowski: "Heartbeat Scheduling:
//! Provable Efficiency for Nested Parallelism", PLDI 2018): a join pushes its second half on a list
//! of its worker, runs the first half, and takes the second half back. That costs a push and a pop
//! of plain memory. Only at a heartbeat, and only while a worker is idle, the *oldest* fork is
//! shared. So queues and wake-ups cost once per heartbeat and not once per join.
//!
//! `unsafe`: a [`Fork`] is on the joiner's stack and is reached by pointer. This is sound because:
//! - Only its own thread accesses the list of a worker (`WorkerContext` is not `Sync`), in calls
//!   that run no foreign code.
//! - A fork leaves the list either back to its joiner ([`Forks::take_back`]) or to be shared
//!   ([`Forks::share_oldest`]), never both: the joiner checks `shared` first. The worker that takes
//!   a shared fork out of its flow's list (under that list's lock) is the only one that runs it.
//! - A joiner does not leave its frame, also not by unwinding, before its fork is taken back or the
//!   fork's latch is set. Setting the latch is the last access to the fork.

#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Fork<B, R> {
    body: UnsafeCell<Option<B>>,
    result: UnsafeCell<Option<std::thread::Result<R>>>,
    latch: AtomicBool,
}

/// A fork of any type, by pointer.
#[derive(Clone, Copy)]
pub(crate) struct ForkRef {
    fork: *const (),
    run: unsafe fn(*const ()),
}

// SAFETY: the body of a fork and its result are `Send` (required by the impl that has
// `Fork::as_ref`). The head of the file says which thread accesses it when.
unsafe impl Send for ForkRef {}

impl ForkRef {
    /// Runs the fork and sets its latch.
    ///
    /// The caller has taken this reference out of a flow's list of shared tasks, and runs it once.
    pub(crate) fn run(self) {
        // SAFETY: `run` was made for the type behind `fork`. The fork is alive, because its joiner
        // waits for the latch that only this call sets. No other thread runs it, because the
        // reference was in one list only.
        unsafe { (self.run)(self.fork) }
    }
}

impl<B, R> Fork<B, R>
where
    B: FnOnce() -> R + Send,
    R: Send,
{
    pub(crate) fn new(body: B) -> Self {
        Fork {
            body: UnsafeCell::new(Some(body)),
            result: UnsafeCell::new(None),
            latch: AtomicBool::new(false),
        }
    }

    pub(crate) fn as_ref(&self) -> ForkRef {
        ForkRef {
            fork: std::ptr::from_ref(self).cast(),
            run: run_shared::<B, R>,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.latch.load(Ordering::Acquire)
    }

    /// Runs the fork, for the joiner that took it back.
    pub(crate) fn run_here(self) -> R {
        match self.body.into_inner() {
            Some(body) => body(),
            // The joiner took the fork back, so it has not run.
            None => unreachable!("a fork that was taken back has its body"),
        }
    }

    /// The result of a fork that another worker ran; continues its panic.
    pub(crate) fn into_result(self) -> R {
        match self.result.into_inner() {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("the latch is set after the result"),
        }
    }
}

/// # Safety
/// `fork` points to a live `Fork<B, R>`; other threads access only its latch.
unsafe fn run_shared<B, R>(fork: *const ())
where
    B: FnOnce() -> R + Send,
    R: Send,
{
    // SAFETY: by contract.
    let fork = unsafe { &*fork.cast::<Fork<B, R>>() };
    // SAFETY: no other thread accesses body and result before the latch is set; the borrow ends in
    // this statement.
    let body = unsafe { (*fork.body.get()).take() };
    // AssertUnwindSafe: the panic continues in the joiner, which sees half-changed data of the fork
    // only through its own borrows.
    let result = body.map(|body| catch_unwind(AssertUnwindSafe(body)));
    // SAFETY: as above.
    unsafe { *fork.result.get() = result };
    // Now the joiner may return and end the life of the fork.
    fork.latch.store(true, Ordering::Release);
}

#[derive(Default)]
pub(crate) struct Forks {
    entries: UnsafeCell<Vec<ForkRef>>,
    /// The number of forks at the front that were shared.
    shared: Cell<usize>,
}

impl Forks {
    /// Adds a fork; returns its position, for [`Forks::take_back`].
    #[inline(always)]
    pub(crate) fn push(&self, fork: ForkRef) -> usize {
        // SAFETY: only this thread has the list (`Forks` is not `Sync`). No reference to it
        // outlives the methods here, and they call nothing that could call them again.
        let entries = unsafe { &mut *self.entries.get() };
        entries.push(fork);
        entries.len() - 1
    }

    /// Takes back the newest fork, which is at `position`. Returns false if it was shared.
    #[inline(always)]
    pub(crate) fn take_back(&self, position: usize) -> bool {
        // SAFETY: as in `push`.
        let entries = unsafe { &mut *self.entries.get() };
        debug_assert_eq!(entries.len(), position + 1, "joins end in reverse order");
        entries.truncate(position);
        if self.shared.get() <= position {
            return true;
        }
        self.shared.set(position);
        false
    }

    /// Returns the oldest fork that is not shared yet, and counts it as shared.
    pub(crate) fn share_oldest(&self) -> Option<ForkRef> {
        // SAFETY: as in `push`.
        let entries = unsafe { &*self.entries.get() };
        let oldest = *entries.get(self.shared.get())?;
        self.shared.set(self.shared.get() + 1);
        Some(oldest)
    }

    /// Empties the list for a job that runs on top, whose forks must not be mixed with those below.
    /// Returns the forks.
    pub(crate) fn set_aside(&self) -> Forks {
        // SAFETY: as in `push`.
        let entries = unsafe { std::mem::take(&mut *self.entries.get()) };
        Forks {
            entries: UnsafeCell::new(entries),
            shared: Cell::new(self.shared.take()),
        }
    }

    /// Reverses [`Forks::set_aside`].
    pub(crate) fn bring_back(&self, forks: Forks) {
        // SAFETY: as in `push`.
        unsafe { *self.entries.get() = forks.entries.into_inner() };
        self.shared.set(forks.shared.get());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_either_taken_back_or_shared() {
        let forks = Forks::default();
        let values: Vec<_> = (0..4u8).map(|value| Fork::new(move || value)).collect();
        let positions: Vec<_> = values
            .iter()
            .map(|fork| forks.push(fork.as_ref()))
            .collect();
        for value in &values[..2] {
            forks.share_oldest().unwrap().run();
            assert!(value.is_done());
        }
        let below = forks.set_aside();
        assert!(forks.share_oldest().is_none());
        forks.bring_back(below);
        let mut results = Vec::new();
        for (fork, position) in values.into_iter().zip(positions).rev() {
            let is_back = forks.take_back(position);
            assert_eq!(is_back, position >= 2);
            results.push(if is_back { fork.run_here() } else { fork.into_result() });
        }
        assert_eq!(results, [3, 2, 1, 0]);
        assert!(forks.share_oldest().is_none());
    }

    #[test]
    fn a_panic_of_a_shared_fork_continues_in_the_joiner() {
        let fork = Fork::new(|| -> u8 { panic!("in a fork") });
        fork.as_ref().run();
        assert!(fork.is_done());
        let result = catch_unwind(AssertUnwindSafe(|| fork.into_result()));
        assert_eq!(
            *result.unwrap_err().downcast::<&str>().unwrap(),
            "in a fork"
        );
    }
}
