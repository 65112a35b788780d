//! Coroutines: the input jobs of a crew, each with a stack of its own, in turns on one thread.
//!
//! The switch of stacks is corosensei's; a stack has a guard page below it. Code that reads as if
//! it blocked (a job that calls a parser that calls a reader) so holds no thread while it waits.
//!
//! `unsafe` here: a pointer to the yielder of the running body. It is kept only while that body
//! runs, on the same thread. A coroutine never enters another one, so whoever finds the pointer is
//! on the stack that belongs to it.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;

use corosensei::Yielder;
use corosensei::stack::DefaultStack;

use crate::held_locks::all_held;

/// Jobs read from foreign code: as much stack as a thread has. Memory is used page by page.
const STACK_BYTES: usize = 2 << 20;

thread_local! {
    static CURRENT: Cell<Option<NonNull<Yielder<(), ()>>>> = const { Cell::new(None) };
}

/// A body of code that runs in turns. Dropping a suspended one unwinds its stack, as a panic does.
pub(crate) struct Coroutine(corosensei::Coroutine<(), (), ()>);

/// Forgets the body that runs, when it returns or unwinds.
struct Forget;

impl Drop for Forget {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

impl Coroutine {
    /// A stack for a coroutine. `None` if the system refuses its mappings.
    pub(crate) fn new_stack() -> Option<DefaultStack> {
        DefaultStack::new(STACK_BYTES).ok()
    }

    /// Makes a coroutine without entering it.
    pub(crate) fn new(stack: DefaultStack, body: impl FnOnce() + 'static) -> Coroutine {
        let run = move |yielder: &Yielder<(), ()>, ()| {
            let _forget = Forget;
            CURRENT.set(Some(NonNull::from(yielder)));
            body();
        };
        Coroutine(corosensei::Coroutine::with_stack(stack, run))
    }

    /// Runs the body until it suspends itself or returns. A panic of the body continues in the
    /// caller. Must not be called again when it has ended.
    pub(crate) fn enter(&mut self) {
        self.0.resume(());
    }

    /// Whether its body has returned or panicked.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.done()
    }

    /// The stack of one that has ended, for another.
    pub(crate) fn into_stack(self) -> DefaultStack {
        self.0.into_stack()
    }
}

/// Whether the caller runs in a coroutine that [`suspend_current`] may suspend: it holds no lock of
/// its thread, which would go on with a lock that it does not know of.
pub(crate) fn is_suspendable() -> bool {
    CURRENT.get().is_some() && all_held() == 0
}

/// Suspends the coroutine in which the caller runs, until it is entered again. If it is dropped
/// instead, its stack is unwound from here. Returns false at once if it is not suspendable.
pub(crate) fn suspend_current() -> bool {
    let Some(yielder) = CURRENT.get().filter(|_| is_suspendable()) else {
        return false;
    };
    // Whoever entered it is not in a coroutine.
    CURRENT.set(None);
    // SAFETY: the pointer is forgotten before the body ends that borrows the yielder. The caller is
    // inside that body, on its stack.
    unsafe { yielder.as_ref() }.suspend(());
    CURRENT.set(Some(yielder));
    true
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;
    use crate::lock::Lock;

    fn coroutine(body: impl FnOnce() + 'static) -> Coroutine {
        Coroutine::new(Coroutine::new_stack().unwrap(), body)
    }

    struct CountsDrops(Arc<AtomicUsize>);

    impl Drop for CountsDrops {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn turns_alternate_and_a_stack_serves_again() {
        let log = Arc::new(Lock::new(vec![]));
        let mut stack = Coroutine::new_stack().unwrap();
        assert!(!is_suspendable() && !suspend_current());
        for _ in 0..2 {
            let inside = Arc::clone(&log);
            let mut turns = Coroutine::new(stack, move || {
                for turn in 0..2 {
                    inside.lock().push(("inside", turn));
                    assert!(suspend_current());
                }
            });
            for turn in 0..2 {
                turns.enter();
                assert!(!turns.has_ended() && !is_suspendable());
                log.lock().push(("outside", turn));
            }
            turns.enter();
            assert!(turns.has_ended() && !is_suspendable());
            let expected = [0, 1].map(|turn| [("inside", turn), ("outside", turn)]);
            assert_eq!(std::mem::take(&mut *log.lock()), expected.concat());
            stack = turns.into_stack();
        }
    }

    #[test]
    fn a_panic_reaches_whoever_entered() {
        let mut failing = coroutine(|| {
            suspend_current();
            panic!("on purpose");
        });
        failing.enter();
        let payload = catch_unwind(AssertUnwindSafe(|| failing.enter())).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
        assert!(failing.has_ended() && !is_suspendable());
    }

    #[test]
    fn dropping_unwinds_the_stack() {
        let drops = Arc::new(AtomicUsize::new(0));
        let make = || {
            let (one, two) = (CountsDrops(drops.clone()), CountsDrops(drops.clone()));
            coroutine(move || {
                let _one = one;
                // On the stack of a nested call.
                let nested = |two: CountsDrops| {
                    let _two = two;
                    suspend_current();
                    unreachable!("is never entered again");
                };
                nested(two);
            })
        };
        drop(make());
        assert_eq!(drops.swap(0, SeqCst), 2, "never entered");
        let mut suspended = make();
        suspended.enter();
        drop(suspended);
        assert_eq!(drops.swap(0, SeqCst), 2, "suspended");
        // Dropped while the one who owns it panics.
        let mut suspended = make();
        suspended.enter();
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _suspended = suspended;
            panic!("outside");
        }));
        assert!(panicked.is_err() && !is_suspendable());
        assert_eq!(drops.swap(0, SeqCst), 2, "dropped by a panic");
    }

    #[test]
    fn who_holds_a_lock_goes_on() {
        let mut holder = coroutine(|| {
            let lock = Lock::new(());
            let held = lock.lock();
            assert!(!suspend_current());
            drop(held);
            assert!(suspend_current());
        });
        holder.enter();
        assert!(!holder.has_ended());
        holder.enter();
        assert!(holder.has_ended());
    }

    /// Uses some stack, and checks it after a suspension.
    fn sum_on_stack(seed: u64, depth: u64) -> u64 {
        let numbers = || -> [u64; 16] { std::array::from_fn(|at| seed * (at as u64 + depth)) };
        let before = numbers();
        if depth.is_multiple_of(2) {
            assert!(suspend_current());
        }
        let below = match depth {
            0 => 0,
            _ => sum_on_stack(seed, depth - 1),
        };
        assert_eq!(before, numbers());
        below + before.iter().sum::<u64>()
    }

    #[test]
    fn hundreds_take_turns_in_any_order() {
        let sum = Arc::new(Lock::new(0));
        let mut expected = 0;
        let mut ready: Vec<_> = (0..500)
            .map(|number| {
                let depth = number % 7;
                expected += (0..=depth).map(|depth| number * 16 * depth).sum::<u64>();
                expected += (depth + 1) * number * 120; // 0 + 1 + ... + 15
                let sum = Arc::clone(&sum);
                coroutine(move || {
                    let of_this = sum_on_stack(number, depth);
                    *sum.lock() += of_this;
                })
            })
            .collect();
        let mut random = refrain_testkit::Rng::new(1);
        while !ready.is_empty() {
            let taken = random.any() as usize % ready.len();
            ready[taken].enter();
            if ready[taken].has_ended() {
                ready.swap_remove(taken);
            }
        }
        assert_eq!(*sum.lock(), expected);
    }
}
