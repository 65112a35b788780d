//! The default backend: corosensei's switch of stacks, on pooled stacks.

use corosensei::CoroutineResult;

use super::entry::TurnStart;
use super::error::CreateError;
use super::pooled_stack::PooledStack;
use super::stack::StackSize;
use super::yielder::{AssemblyYielder, WayBack, Yielder};
use crate::held_locks::locks_held;

pub(super) struct AssemblyCoroutine<R>(corosensei::Coroutine<TurnStart, (), R, PooledStack>);

impl<R: 'static> AssemblyCoroutine<R> {
    #[inline]
    pub(super) fn new(
        size: StackSize,
        body: impl FnOnce(&Yielder<'_>) -> R + 'static,
    ) -> Result<Self, CreateError> {
        let stack = PooledStack::take(size)?;
        let run = |yielder: &AssemblyYielder, first: TurnStart| {
            body(&Yielder::new(WayBack::Assembly(yielder), first))
        };
        let coroutine = corosensei::Coroutine::with_stack(stack, run);
        Ok(AssemblyCoroutine(coroutine))
    }

    /// Runs the body until it suspends or returns. A panic of the body continues here.
    #[inline]
    pub(super) fn enter(&mut self, entry: TurnStart) -> Option<R> {
        let held = locks_held();
        let mut entry = entry;
        loop {
            match self.0.resume(entry) {
                CoroutineResult::Return(value) => return Some(value),
                // It has not left more locks behind on this thread than it found.
                CoroutineResult::Yield(()) if locks_held() <= held => return None,
                CoroutineResult::Yield(()) => entry = TurnStart::REFUSED,
            }
        }
    }
}

impl<R> AssemblyCoroutine<R> {
    #[inline]
    pub(super) fn is_finished(&self) -> bool {
        self.0.done()
    }
}
