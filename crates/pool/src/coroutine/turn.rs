//! Coroutines: created, entered, dropped.

use std::cell::{Cell, RefCell};

use corosensei::CoroutineResult;

use super::error::{CreateError, EnterError};
use super::pooled_stack::PooledStack;
use super::stack::StackSize;
use super::stack_pool::count_switches;
use super::yielder::{RawYielder, TurnStart, Yielder};
use crate::held_locks::all_held;

/// What happened in a turn of a coroutine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered<R> {
    /// It suspended itself, and can be entered again.
    Suspended,
    /// It has finished with this value.
    Finished(R),
}

/// A body of code with its own stack, which runs in turns on the thread that created it.
///
/// Dropping a suspended one unwinds its stack, as a panic does; a body that catches that and
/// suspends again ends the process.
///
/// ```
/// use refrain_pool::coroutine::{Coroutine, Entered, StackSize};
///
/// let coroutine = Coroutine::new(StackSize::Medium, |yielder| {
///     yielder.suspend()?;
///     Ok::<_, refrain_pool::coroutine::HoldsLock>(7)
/// })?;
/// assert_eq!(coroutine.enter(), Ok(Entered::Suspended));
/// assert_eq!(coroutine.enter(), Ok(Entered::Finished(Ok(7))));
/// assert!(coroutine.enter().is_err());
/// # Ok::<(), refrain_pool::coroutine::CreateError>(())
/// ```
pub struct Coroutine<R> {
    /// Borrowed while it runs; `None` when it has finished, and its stack is free.
    running: RefCell<Option<Running<R>>>,
    entries: Cell<u64>,
}

type Running<R> = corosensei::Coroutine<TurnStart, (), R, PooledStack>;

impl<R: 'static> Coroutine<R> {
    /// Makes a coroutine without entering it.
    ///
    /// # Errors
    /// The system has no room for another stack.
    #[inline]
    pub fn new(
        stack_size: StackSize,
        body: impl FnOnce(&Yielder<'_>) -> R + 'static,
    ) -> Result<Coroutine<R>, CreateError> {
        let stack = PooledStack::take(stack_size)?;
        let run = |yielder: &RawYielder, _: TurnStart| body(&Yielder(yielder));
        Ok(Coroutine {
            running: RefCell::new(Some(Running::with_stack(stack, run))),
            entries: Cell::new(0),
        })
    }

    /// Runs the body until it suspends or returns. A panic of the body continues in the caller; the
    /// coroutine has then finished.
    ///
    /// # Errors
    /// If it has finished or is running.
    #[inline]
    pub fn enter(&self) -> Result<Entered<R>, EnterError> {
        let Ok(mut slot) = self.running.try_borrow_mut() else {
            return Err(EnterError::Running);
        };
        // It is done if it panicked.
        let Some(running) = slot.as_mut().filter(|running| !running.done()) else {
            return Err(EnterError::Finished);
        };
        self.entries.set(self.entries.get() + 1);
        let held = all_held();
        let mut start = TurnStart::Continue;
        loop {
            match running.resume(start) {
                CoroutineResult::Return(value) => {
                    *slot = None;
                    return Ok(Entered::Finished(value));
                }
                // It has not left more locks behind on this thread than it found.
                CoroutineResult::Yield(()) if all_held() <= held => {
                    return Ok(Entered::Suspended);
                }
                CoroutineResult::Yield(()) => start = TurnStart::Refused,
            }
        }
    }
}

impl<R> Coroutine<R> {
    /// How often it was entered.
    pub fn entries(&self) -> u64 {
        self.entries.get()
    }

    /// Whether its body has returned or panicked.
    pub fn is_finished(&self) -> bool {
        let running = self.running.try_borrow();
        running.is_ok_and(|slot| slot.as_ref().is_none_or(Running::done))
    }
}

impl<R> Drop for Coroutine<R> {
    #[inline]
    fn drop(&mut self) {
        let entries = self.entries.get();
        if entries > 0 {
            count_switches(entries);
        }
    }
}

impl<R> std::fmt::Debug for Coroutine<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (formatter.debug_struct("Coroutine"))
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}
