//! Forks: the second halves of joins, on the stack of whoever joins, until somebody idle wants one.
//!
//! Heartbeat scheduling (Acar, Charguéraud, Guatto, Rainey, Sieczkowski: "Heartbeat Scheduling: Provable Efficiency for Nested
//! Parallelism", PLDI 2018): a join pushes its second half on a list of the worker's own, runs the first half, and takes the second half
//! back. That costs a push and a pop of plain memory. Only at a beat, and only while somebody is idle, is the *oldest* fork shared,
//! which pays for queues and wake-ups once per beat and not once per join.
//!
//! `unsafe`: a [`Fork`] lies on the joiner's stack and is reached by pointer. Why that is right:
//! - The list of a worker is touched by its own thread alone (`Local` is not `Sync`), in calls that run nothing foreign.
//! - A fork leaves the list either back to its joiner ([`Forks::take_back`]) or to be shared ([`Forks::share_oldest`]), never both: the
//!   joiner looks at `shared` first. Who takes a shared fork out of its flow's list (under that list's lock) is the only one to run it.
//! - A joiner does not leave its frame, also not by unwinding, before its fork is taken back or its latch is set; setting the latch is the
//!   last thing that touches the fork.

#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// The second half of a join.
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

// SAFETY: the body of a fork is `Send` (`Fork::as_ref` demands it), and so is its result; see the head of the file for who touches it when.
unsafe impl Send for ForkRef {}

impl ForkRef {
    /// Runs the fork and sets its latch.
    ///
    /// The caller took this reference out of a flow's list of shared forks, and runs it once.
    pub(crate) fn run(self) {
        // SAFETY: `run` was made for the type behind `fork`; the fork is alive, because its joiner waits for the latch that only this call sets,
        // and nobody else runs it, because the reference was in one list only.
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

    /// Whether whoever ran it is done with it.
    pub(crate) fn is_done(&self) -> bool {
        self.latch.load(Ordering::Acquire)
    }

    /// Runs it here: for the joiner that took it back.
    pub(crate) fn run_here(self) -> R {
        match self.body.into_inner() {
            Some(body) => body(),
            // The joiner took the fork back, so nobody has run it.
            None => unreachable!("a fork that was taken back has its body"),
        }
    }

    /// What it returned, elsewhere; goes on with its panic.
    pub(crate) fn into_result(self) -> R {
        match self.result.into_inner() {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("the latch is set after the result"),
        }
    }
}

/// # Safety
/// `fork` points to a live `Fork<B, R>` that nobody else touches but for its latch.
unsafe fn run_shared<B, R>(fork: *const ())
where
    B: FnOnce() -> R + Send,
    R: Send,
{
    // SAFETY: by contract.
    let fork = unsafe { &*fork.cast::<Fork<B, R>>() };
    // SAFETY: nobody else touches body and result before the latch is set; the borrow ends in this statement.
    let body = unsafe { (*fork.body.get()).take() };
    // AssertUnwindSafe: the panic goes on in the joiner, which sees nothing of what the fork left half done but through its own borrows.
    let result = body.map(|body| catch_unwind(AssertUnwindSafe(body)));
    // SAFETY: as above.
    unsafe { *fork.result.get() = result };
    // From here on the joiner may return and the fork be gone.
    fork.latch.store(true, Ordering::Release);
}

/// The forks of one worker that were not shared, oldest first.
#[derive(Default)]
pub(crate) struct Forks {
    entries: UnsafeCell<Vec<ForkRef>>,
    /// So many, from the front, were shared.
    shared: Cell<usize>,
}

impl Forks {
    /// Adds a fork; returns its position, for [`Forks::take_back`].
    #[inline(always)]
    pub(crate) fn push(&self, fork: ForkRef) -> usize {
        // SAFETY: this thread alone has the list (`Forks` is not `Sync`) and no reference to it outlives the methods here, which call nothing
        // that could come back.
        let entries = unsafe { &mut *self.entries.get() };
        entries.push(fork);
        entries.len() - 1
    }

    /// Takes the newest fork back, which stands at `position`; false if it was shared.
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

    /// The oldest fork, to be shared.
    pub(crate) fn share_oldest(&self) -> Option<ForkRef> {
        // SAFETY: as in `push`.
        let entries = unsafe { &*self.entries.get() };
        let oldest = *entries.get(self.shared.get())?;
        self.shared.set(self.shared.get() + 1);
        Some(oldest)
    }

    /// Empties the list for a job that runs on top, whose forks are not to be mixed with those below; returns what was in it.
    pub(crate) fn set_aside(&self) -> Forks {
        // SAFETY: as in `push`.
        let entries = unsafe { std::mem::take(&mut *self.entries.get()) };
        Forks {
            entries: UnsafeCell::new(entries),
            shared: Cell::new(self.shared.take()),
        }
    }

    /// Undoes [`Forks::set_aside`].
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
    fn a_fork_is_taken_back_or_shared_and_never_both() {
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
            let is_mine = forks.take_back(position);
            assert_eq!(is_mine, position >= 2);
            results.push(if is_mine {
                fork.run_here()
            } else {
                fork.into_result()
            });
        }
        assert_eq!(results, [3, 2, 1, 0]);
        assert!(forks.share_oldest().is_none());
    }

    #[test]
    fn a_panic_of_a_shared_fork_goes_on_in_the_joiner() {
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
