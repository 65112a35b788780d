//! A coroutine's handle to itself, to suspend and to wait.
//!
//! `unsafe` here: the waker of the current turn, which [`TurnStart`] points to.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::entry::TurnStart;
use super::error::HoldsLock;
use super::handoff::ThreadYielder;

pub(super) type AssemblyYielder = corosensei::Yielder<TurnStart, ()>;

pub(super) enum WayBack<'a> {
    Assembly(&'a AssemblyYielder),
    Thread(&'a ThreadYielder),
}

/// Suspends the coroutine whose body it was given to.
pub struct Yielder<'a> {
    back: WayBack<'a>,
    /// The start of the current turn.
    entry: Cell<TurnStart>,
}

impl<'a> Yielder<'a> {
    pub(super) fn new(back: WayBack<'a>, first: TurnStart) -> Yielder<'a> {
        Yielder {
            back,
            entry: Cell::new(first),
        }
    }

    /// Returns to the entering code; continues when the coroutine is entered again. If it is
    /// dropped instead, its stack is unwound from here, as by a panic: values are dropped.
    ///
    /// # Errors
    /// If the coroutine holds a lock of its thread; its turn then continues.
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

    /// Wakes the waiting code that entered; see [`MovableCoroutine`](super::MovableCoroutine),
    /// which is a future.
    pub fn waker(&self) -> Option<Waker> {
        // SAFETY: the body runs, so its turn has not ended; refused entries are not kept.
        unsafe { self.entry.get().waker() }
    }

    /// Waits for a future. The coroutine is suspended until it is ready; if it was entered without
    /// a waker, the future is polled again at each entry.
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
