//! A coroutine's handle to itself.

use super::error::HoldsLock;

pub(super) type RawYielder = corosensei::Yielder<TurnStart, ()>;

/// What a suspended body is told when it continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnStart {
    /// It was entered again.
    Continue,
    /// It was not suspended.
    Refused,
}

/// Suspends the coroutine whose body it was given to.
pub struct Yielder<'a>(pub(super) &'a RawYielder);

impl Yielder<'_> {
    /// Returns to the entering code; continues when the coroutine is entered again. If it is
    /// dropped instead, its stack is unwound from here, as by a panic: values are dropped.
    ///
    /// # Errors
    /// If the coroutine holds a lock of its thread; its turn then continues.
    #[inline]
    pub fn suspend(&self) -> Result<(), HoldsLock> {
        match self.0.suspend(()) {
            TurnStart::Continue => Ok(()),
            TurnStart::Refused => Err(HoldsLock),
        }
    }
}
