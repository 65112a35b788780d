//! What a coroutine sees of itself: how it suspends, and how it waits.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::entry::Entry;
use super::error::HoldsLock;
use super::handoff::ThreadYielder;
use crate::held_locks::locks_held;

pub(super) type AssemblyYielder = corosensei::Yielder<Entry, ()>;

/// The way back to whoever entered.
pub(super) enum WayBack<'a> {
    Assembly(&'a AssemblyYielder),
    Thread(&'a ThreadYielder),
}

/// Suspends the coroutine whose body it was given to.
pub struct Yielder<'a> {
    back: WayBack<'a>,
    waker: RefCell<Option<Waker>>,
    locks_held_outside: Cell<u32>,
}

impl<'a> Yielder<'a> {
    pub(super) fn new(back: WayBack<'a>, first: Entry) -> Yielder<'a> {
        Yielder {
            back,
            waker: RefCell::new(first.waker),
            locks_held_outside: Cell::new(first.locks_held),
        }
    }

    /// Returns to whoever entered; continues when the coroutine is entered again. If it is dropped
    /// instead, its stack is unwound from here, as by a panic: values are dropped.
    ///
    /// # Errors
    /// If the coroutine has taken a lock of its thread; it is not suspended then.
    // Never inlined: the caller may continue on another thread, and the compiler must not use the
    // address of a variable of this thread there. Nothing after the switch reads such a variable.
    #[inline(never)]
    pub fn suspend(&self) -> Result<(), HoldsLock> {
        if locks_held() > self.locks_held_outside.get() {
            return Err(HoldsLock);
        }
        let entry = match &self.back {
            WayBack::Assembly(yielder) => yielder.suspend(()),
            WayBack::Thread(yielder) => yielder.suspend(),
        };
        self.locks_held_outside.set(entry.locks_held);
        if entry.waker.is_some() || self.waker.borrow().is_some() {
            *self.waker.borrow_mut() = entry.waker;
        }
        Ok(())
    }

    /// What wakes the one who entered, if it waits for that: see
    /// [`MovableCoroutine`](super::MovableCoroutine), which is a future.
    pub fn waker(&self) -> Option<Waker> {
        self.waker.borrow().clone()
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
