//! A mutex that suspends coroutines instead of blocking threads.
//!
//! `unsafe` here: the guard refers to the value in the cell. The mutex has one guard at a time, so
//! that no other reference exists.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::error::HoldsLock;
use super::queue::Waiting;
use super::yielder::Yielder;
use crate::lock::Lock;

/// A mutex for coroutines: a waiting coroutine is suspended, and its thread continues with other
/// work. It may be held across suspensions, and released on another thread.
///
/// First come, first served: a release hands it to the coroutine that has waited longest.
#[derive(Debug, Default)]
pub struct CoMutex<T> {
    state: Lock<State>,
    value: UnsafeCell<T>,
}

#[derive(Debug, Default)]
struct State {
    is_held: bool,
    waiting: VecDeque<Arc<Waiting>>,
}

// SAFETY: as for the standard library's mutex: one thread at a time uses the value.
unsafe impl<T: Send> Sync for CoMutex<T> {}

/// Holds the mutex until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct CoMutexGuard<'a, T> {
    mutex: &'a CoMutex<T>,
}

// SAFETY: a shared guard only yields shared references to the value.
unsafe impl<T: Sync> Sync for CoMutexGuard<'_, T> {}

/// A coroutine that is dropped while it waits leaves the queue, or hands on the mutex.
struct Place<'a, T> {
    mutex: &'a CoMutex<T>,
    own: Arc<Waiting>,
    is_done: bool,
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.mutex.state.lock();
        let before = state.waiting.len();
        (state.waiting).retain(|other| !Arc::ptr_eq(other, &self.own));
        let was_given = state.waiting.len() == before;
        drop(state);
        if was_given {
            self.mutex.release();
        }
    }
}

impl<T> CoMutex<T> {
    /// An unlocked mutex around `value`.
    pub fn new(value: T) -> CoMutex<T> {
        CoMutex {
            state: Lock::new(State::default()),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the mutex.
    ///
    /// # Errors
    /// If it has to wait while holding a lock of its thread.
    pub fn lock(&self, yielder: &Yielder<'_>) -> Result<CoMutexGuard<'_, T>, HoldsLock> {
        let own = {
            let mut state = self.state.lock();
            if !state.is_held {
                state.is_held = true;
                return Ok(CoMutexGuard { mutex: self });
            }
            let own = Waiting::new();
            state.waiting.push_back(own.clone());
            own
        };
        let mut place = Place {
            mutex: self,
            own,
            is_done: false,
        };
        place.own.wait(yielder)?;
        place.is_done = true;
        Ok(CoMutexGuard { mutex: self })
    }

    /// Takes the mutex if it is free.
    pub fn try_lock(&self) -> Option<CoMutexGuard<'_, T>> {
        let mut state = self.state.lock();
        if state.is_held {
            return None;
        }
        state.is_held = true;
        Some(CoMutexGuard { mutex: self })
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Hands the mutex to the coroutine that has waited longest.
    fn release(&self) {
        let next = {
            let mut state = self.state.lock();
            let next = state.waiting.pop_front();
            state.is_held = next.is_some();
            next
        };
        if let Some(next) = next {
            next.choose();
        }
    }
}

impl<T> Deref for CoMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `is_held` is set while this guard exists, and only one guard is made for it. The
        // lock of the state orders earlier holders before this one.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for CoMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` excludes other references from this guard.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for CoMutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.release();
    }
}
