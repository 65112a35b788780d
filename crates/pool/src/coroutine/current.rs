//! The coroutine that runs on the calling thread, for code that has no [`Yielder`]: a reader below
//! a parser below a job.
//!
//! `unsafe` here: a pointer to the yielder of the running body. It is kept only while
//! [`run_as_current`] borrows that yielder, on the same thread. It is used only on the stack that
//! belongs to it: a coroutine that was entered by another one must not suspend the outer one.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;
use std::ptr::NonNull;

use super::stack::StackSize;
use super::yielder::Yielder;

#[derive(Clone, Copy)]
struct Current {
    yielder: NonNull<Yielder<'static>>,
    /// The lowest address of its stack, or one in the guard page below it.
    stack_start: usize,
    stack_end: usize,
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

/// An address on the current stack, below everything that the callers have there.
#[inline(never)]
fn address_on_stack() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

impl Current {
    fn stack(&self) -> Range<usize> {
        self.stack_start..self.stack_end
    }
}

struct Restore(Option<Current>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs `body`, the first call of a coroutine on a separate stack (not thread). Inside,
/// [`suspend_current`] suspends the coroutine.
pub(crate) fn run_as_current<R>(
    yielder: &Yielder<'_>,
    stack_size: StackSize,
    body: impl FnOnce() -> R,
) -> R {
    // It is on this stack, too, above everything that is called from here.
    let stack_end = std::ptr::from_ref(yielder).addr();
    let current = Current {
        yielder: NonNull::from(yielder).cast(),
        // Less than a page is above it; the range's excess is in the guard page.
        stack_start: stack_end.saturating_sub(stack_size.bytes()),
        stack_end,
    };
    let _restore = Restore(CURRENT.replace(Some(current)));
    body()
}

/// Whether the caller runs in a coroutine that [`suspend_current`] may suspend.
pub(crate) fn is_in_current() -> bool {
    let current = CURRENT.get();
    current.is_some_and(|current| current.stack().contains(&address_on_stack()))
}

/// Suspends the coroutine in which the caller runs. Returns false at once outside coroutines, or if
/// the coroutine holds a lock of its thread.
pub(crate) fn suspend_current() -> bool {
    let Some(current) = CURRENT.get().filter(|_| is_in_current()) else {
        return false;
    };
    // The code that entered is not in this coroutine.
    CURRENT.set(None);
    // SAFETY: `run_as_current` borrows the yielder until its body returns or unwinds, and then
    // forgets the pointer. The caller is inside that body, on its stack.
    let suspended = unsafe { current.yielder.as_ref() }.suspend();
    CURRENT.set(Some(current));
    suspended.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coroutine::tests::alone;
    use crate::coroutine::{Coroutine, Entered};
    use crate::lock::Lock;

    fn coroutine(body: impl FnOnce() -> bool + Send + 'static) -> Coroutine<bool> {
        let run = move |yielder: &Yielder<'_>| run_as_current(yielder, StackSize::Medium, body);
        Coroutine::new(StackSize::Medium, run).unwrap()
    }

    #[test]
    fn the_innermost_caller_suspends_without_a_yielder() {
        let _alone = alone();
        assert!(!is_in_current());
        assert!(!suspend_current());
        let (one, two) = (coroutine(suspend_current), coroutine(suspend_current));
        assert_eq!(one.enter(), Ok(Entered::Suspended));
        assert!(!is_in_current());
        assert_eq!(two.enter(), Ok(Entered::Suspended));
        assert_eq!(one.enter(), Ok(Entered::Finished(true)));
        assert_eq!(two.enter(), Ok(Entered::Finished(true)));
        // Dropped while it is suspended.
        let three = coroutine(suspend_current);
        assert_eq!(three.enter(), Ok(Entered::Suspended));
        drop(three);
        assert!(!suspend_current());
    }

    #[test]
    fn a_coroutine_inside_of_another_does_not_suspend_it() {
        let _alone = alone();
        let outer = coroutine(|| {
            let inner = Coroutine::new(StackSize::Medium, |_| suspend_current()).unwrap();
            assert_eq!(inner.enter(), Ok(Entered::Finished(false)));
            suspend_current()
        });
        assert_eq!(outer.enter(), Ok(Entered::Suspended));
        assert_eq!(outer.enter(), Ok(Entered::Finished(true)));
    }

    #[test]
    fn who_holds_a_lock_goes_on() {
        let _alone = alone();
        let holder = coroutine(|| {
            let lock = Lock::new(());
            let _held = lock.lock();
            suspend_current()
        });
        assert_eq!(holder.enter(), Ok(Entered::Finished(false)));
    }
}
