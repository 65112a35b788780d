//! Work that nobody waits for any more: it ends at its next checkpoint.
//!
//! A job that takes minutes (a block of the densest codec) may have lost its run, which was
//! cancelled or has failed, and whose threads have to come back before it can say so. Such a job
//! unwinds, as by a panic without a message, and its crew takes it for one that panicked.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::panicking;

use refrain_sync::atomic::{AtomicBool, Ordering};

use crate::held_locks::holds_lock;

thread_local! {
    /// Whether nobody waits for what this thread does; `None` if that cannot happen.
    static UNWANTED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The results of jobs are wanted until this is dropped.
#[derive(Debug)]
pub struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Jobs are wanted.
    #[expect(
        clippy::new_without_default,
        reason = "what is dropped at once would be a mistake"
    )]
    pub fn new() -> Wanted {
        Wanted(Arc::new(AtomicBool::new(false)))
    }

    /// The side of a job.
    pub fn job(&self) -> WhileWanted {
        WhileWanted(Some(Arc::clone(&self.0)))
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The side of a job of [`Wanted`], or of a job that is always wanted.
#[derive(Debug)]
pub struct WhileWanted(Option<Arc<AtomicBool>>);

impl WhileWanted {
    /// That of the job which this thread runs, for a part of it on another thread.
    pub(crate) fn of_this_thread() -> WhileWanted {
        WhileWanted(UNWANTED.with_borrow(Clone::clone))
    }

    /// Runs `work`, which unwinds at a [`checkpoint`](crate::pool::checkpoint) when its result is
    /// no longer wanted, unless it holds a [`Lock`](crate::Lock) there. It has to be whole then:
    /// what it shares with others, and what it lends to others, may not depend on its end.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        let _former = enter(self.0);
        work()
    }
}

fn enter(unwanted: Option<Arc<AtomicBool>>) -> Former {
    Former(UNWANTED.replace(unwanted))
}

/// Takes this thread's work for wanted until the guard is dropped: it runs another's job on top.
pub(crate) fn set_aside() -> Former {
    enter(None)
}

/// Restores what was before.
pub(crate) struct Former(Option<Arc<AtomicBool>>);

impl Drop for Former {
    fn drop(&mut self) {
        UNWANTED.replace(self.0.take());
    }
}

/// Unwinds if nobody waits for what this thread does.
#[inline]
pub(crate) fn pass_checkpoint() {
    let is_unwanted = UNWANTED.with_borrow(|unwanted| {
        let flag = unwanted.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    });
    if is_unwanted && !holds_lock() && !panicking() {
        resume_unwind(Box::new("its result is no longer wanted"));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::Lock;
    use crate::pool::checkpoint;

    #[test]
    fn unwanted_work_ends_at_a_checkpoint() {
        let wanted = Wanted::new();
        let job = wanted.job();
        let mut wanted = Some(wanted);
        let mut passed = 0;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            job.run(|| {
                loop {
                    checkpoint();
                    passed += 1;
                    if passed == 3 {
                        drop(wanted.take());
                    }
                }
            })
        }));
        assert!(ended.is_err());
        assert_eq!(passed, 3);
        // The thread's next work is wanted.
        checkpoint();
    }

    #[test]
    fn a_part_on_another_thread_ends_too() {
        let wanted = Wanted::new();
        let lent = wanted.job().run(WhileWanted::of_this_thread);
        drop(wanted);
        let part = std::thread::spawn(move || lent.run(checkpoint));
        assert!(part.join().is_err());
        WhileWanted::of_this_thread().run(checkpoint);
    }

    #[test]
    fn work_on_top_and_work_with_a_lock_go_on() {
        let wanted = Wanted::new();
        let job = wanted.job();
        let lock = Lock::new(());
        let ended = catch_unwind(AssertUnwindSafe(|| {
            job.run(|| {
                drop(wanted);
                let held = lock.lock();
                checkpoint();
                drop(held);
                let on_top = set_aside();
                checkpoint();
                drop(on_top);
            })
        }));
        assert!(ended.is_ok());
    }
}
