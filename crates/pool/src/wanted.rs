//! Work that nobody waits for any more: it ends at its next checkpoint.
//!
//! A job that takes minutes (a block of the densest codec) may have lost its crew, whose run was
//! cancelled or has failed, and whose threads have to come back before it can say so. Such a job
//! unwinds, as by a panic without a message, and its crew takes it for one that panicked.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::panicking;

use refrain_sync::atomic::{AtomicBool, Ordering};

use crate::held_locks::holds_lock;

/// Tells whether nobody waits for something any more.
#[derive(Clone)]
struct IsUnwanted {
    ask: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Whether it is asked also while the thread waits for others.
    asks_in_waits: bool,
}

thread_local! {
    /// Whether nobody waits for what this thread does; `None` if that cannot happen.
    static IS_UNWANTED: RefCell<Option<IsUnwanted>> = const { RefCell::new(None) };
}

/// Whether the results of a crew's jobs are wanted.
pub(crate) struct Wanted {
    has_ended: Arc<AtomicBool>,
    is_unwanted: IsUnwanted,
}

impl Default for Wanted {
    fn default() -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&has_ended);
        Wanted {
            has_ended,
            is_unwanted: IsUnwanted {
                ask: Arc::new(move || asked.load(Ordering::Relaxed)),
                // For whom it would wait ends, too, or computes what others want.
                asks_in_waits: false,
            },
        }
    }
}

impl Wanted {
    /// The side of a job.
    pub(crate) fn job(&self) -> WhileWanted {
        WhileWanted(Some(self.is_unwanted.clone()))
    }

    /// Nobody waits for the jobs any more.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

/// The side of a job of [`Wanted`], or of a job that is always wanted.
pub(crate) struct WhileWanted(Option<IsUnwanted>);

impl WhileWanted {
    /// That of the job which this thread runs, for a part of it.
    pub(crate) fn of_this_thread() -> WhileWanted {
        WhileWanted(IS_UNWANTED.with_borrow(Clone::clone))
    }

    /// Runs `work`, which unwinds at a [`checkpoint`](crate::pool::checkpoint) when its result is
    /// no longer wanted, unless it holds a [`Lock`](crate::Lock) there.
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        let _former = enter(self.0);
        work()
    }
}

/// Runs `work` on this thread, and for it what others compute. `None`: it ended early because
/// `is_unwanted` became true. That is called at each [`checkpoint`](crate::pool::checkpoint), also
/// on other threads, and should be quick. What the work shares with others has to be whole there.
pub fn while_wanted<R>(
    is_unwanted: impl Fn() -> bool + Send + Sync + 'static,
    work: impl FnOnce() -> R,
) -> Option<R> {
    let is_unwanted = IsUnwanted {
        ask: Arc::new(is_unwanted),
        asks_in_waits: true,
    };
    let wanted = WhileWanted(Some(is_unwanted.clone()));
    match catch_unwind(AssertUnwindSafe(|| wanted.run(work))) {
        Ok(result) => Some(result),
        Err(_) if (is_unwanted.ask)() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Runs a part of a job to its end although nobody waits for the job any more, because others rely
/// on it: half of it done would stay so.
pub fn in_any_case<R>(work: impl FnOnce() -> R) -> R {
    let _former = set_aside();
    work()
}

fn enter(is_unwanted: Option<IsUnwanted>) -> Former {
    Former(IS_UNWANTED.replace(is_unwanted))
}

/// Takes this thread's work for wanted until the guard is dropped: it runs another's job on top.
pub(crate) fn set_aside() -> Former {
    enter(None)
}

/// Restores what was before.
pub(crate) struct Former(Option<IsUnwanted>);

impl Drop for Former {
    fn drop(&mut self) {
        IS_UNWANTED.replace(self.0.take());
    }
}

/// Whether this thread asks whether its work is wanted while it waits for others.
pub(crate) fn asks_in_waits() -> bool {
    IS_UNWANTED.with_borrow(|asked| asked.as_ref().is_some_and(|asked| asked.asks_in_waits))
}

/// Unwinds if nobody waits for what this thread does.
#[inline]
pub(crate) fn pass_checkpoint() {
    // What it calls may come to a checkpoint, too.
    let asked = set_aside();
    let is_unwanted = asked.0.as_ref().is_some_and(|asked| (asked.ask)());
    drop(asked);
    if is_unwanted && !holds_lock() && !panicking() {
        resume_unwind(Box::new("its result is no longer wanted"));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use refrain_sync::atomic::AtomicUsize;

    use super::*;
    use crate::Lock;
    use crate::pool::checkpoint;

    #[test]
    fn unwanted_work_ends_at_a_checkpoint() {
        let wanted = Wanted::default();
        let mut passed = 0;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            wanted.job().run(|| {
                loop {
                    checkpoint();
                    passed += 1;
                    if passed == 3 {
                        wanted.end();
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
    fn a_thread_asks_whether_its_work_is_wanted() {
        let passed = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&passed);
        let is_unwanted = move || asked.fetch_add(1, Ordering::Relaxed) >= 2;
        let ended = while_wanted(is_unwanted, || {
            loop {
                checkpoint();
            }
        });
        assert_eq!(ended, None::<()>);
        assert_eq!(while_wanted(|| false, || 5), Some(5));
        let panicked = catch_unwind(|| while_wanted(|| false, || panic!("odd")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"odd"));
    }

    #[test]
    fn a_thread_does_not_wait_for_another_whose_result_it_wants_no_more() {
        let turns = crate::turns::Turns::default();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let is_unwanted = move || count.fetch_add(1, Ordering::Relaxed) > 0;
        let taken = turns.take();
        let ended = std::thread::scope(|scope| {
            let waits = || while_wanted(is_unwanted, || turns.take().is_some());
            scope.spawn(waits).join().unwrap()
        });
        assert_eq!(ended, None);
        drop(taken);
        assert!(turns.take().is_some());
    }

    #[test]
    fn a_part_on_another_thread_ends_too() {
        let wanted = Wanted::default();
        let lent = wanted.job().run(WhileWanted::of_this_thread);
        wanted.end();
        let part = std::thread::spawn(move || lent.run(checkpoint));
        assert!(part.join().is_err());
        WhileWanted::of_this_thread().run(checkpoint);
    }

    #[test]
    fn work_on_top_and_work_with_a_lock_go_on() {
        let wanted = Wanted::default();
        let lock = Lock::new(());
        let ended = catch_unwind(AssertUnwindSafe(|| {
            wanted.job().run(|| {
                wanted.end();
                let held = lock.lock();
                checkpoint();
                drop(held);
                in_any_case(checkpoint);
            })
        }));
        assert!(ended.is_ok());
    }
}
