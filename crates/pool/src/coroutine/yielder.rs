//! What a coroutine sees of itself: how it suspends, and how it waits.
//!
//! `unsafe` here: the waker of the present turn, which [`TurnStart`] points to.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::entry::TurnStart;
use super::error::HoldsLock;
use super::handoff::ThreadYielder;

pub(super) type AssemblyYielder = corosensei::Yielder<TurnStart, ()>;

/// The way back to whoever entered.
pub(super) enum WayBack<'a> {
    Assembly(&'a AssemblyYielder),
    Thread(&'a ThreadYielder),
}

/// Suspends the coroutine whose body it was given to.
pub struct Yielder<'a> {
    back: WayBack<'a>,
    /// With which the present turn began.
    entry: Cell<TurnStart>,
}

impl<'a> Yielder<'a> {
    pub(super) fn new(back: WayBack<'a>, first: TurnStart) -> Yielder<'a> {
        Yielder {
            back,
            entry: Cell::new(first),
        }
    }

    /// Returns to whoever entered; continues when the coroutine is entered again. If it is dropped
    /// instead, its stack is unwound from here, as by a panic: values are dropped.
    ///
    /// # Errors
    /// If the coroutine has taken a lock of its thread; its turn goes on then.
    // No thread-local variable is used here: the caller may continue on another thread, and the
    // compiler could use its address from before.
    #[inline]
    pub fn suspend(&self) -> Result<(), HoldsLock> {
        let entry = match &self.back {
            WayBack::Assembly(yielder) => yielder.suspend(()),
            WayBack::Thread(yielder) => yielder.suspend(),
        };
        if entry.is_refused() {
            return Err(HoldsLock);
        }
        self.entry.set(entry);
        Ok(())
    }

    /// What wakes the one who entered, if it waits for that: see
    /// [`MovableCoroutine`](super::MovableCoroutine), which is a future.
    pub fn waker(&self) -> Option<Waker> {
        // SAFETY: the body runs, so its turn has not ended; refused entries are not kept.
        unsafe { self.entry.get().waker() }
    }

    /// Waits for a future. While it is not ready, the coroutine is suspended; if it was entered
    /// without a waker, the future is asked again at each entry.
    ///
    /// # Errors
    /// As [`suspend`](Yielder::suspend).
    pub fn wait_for<T>(&self, future: impl Future<Output = T>) -> Result<T, HoldsLock> {
        let mut future = pin!(future);
        loop {
            let waker = self.waker();
            let waker = waker.as_ref().unwrap_or(Waker::noop());
            match future.as_mut().poll(&mut Context::from_waker(waker)) {
                Poll::Ready(value) => return Ok(value),
                Poll::Pending => self.suspend()?,
            }
        }
    }
}
