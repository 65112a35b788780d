//! Coroutines that wait for each other, first come, first served.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use super::error::HoldsLock;
use super::yielder::Yielder;
use crate::lock::Lock;

#[derive(Debug)]
pub(super) struct Waiting {
    is_chosen: AtomicBool,
    waker: Lock<Option<Waker>>,
}

impl Waiting {
    pub(super) fn new() -> Arc<Waiting> {
        Arc::new(Waiting {
            is_chosen: AtomicBool::new(false),
            waker: Lock::new(None),
        })
    }

    pub(super) fn is_chosen(&self) -> bool {
        self.is_chosen.load(Ordering::Acquire)
    }

    /// Ends its wait, after it was taken out of its queue.
    pub(super) fn choose(&self) {
        let waker = {
            let mut waker = self.waker.lock();
            self.is_chosen.store(true, Ordering::Release);
            waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn wait(&self, yielder: &Yielder<'_>) -> Result<(), HoldsLock> {
        loop {
            {
                let mut waker = self.waker.lock();
                if self.is_chosen() {
                    return Ok(());
                }
                *waker = yielder.waker();
            }
            yielder.suspend()?;
            if self.is_chosen() {
                return Ok(());
            }
        }
    }
}

/// Coroutines that wait until another one wakes them, in order of arrival.
///
/// Wakes are not remembered: a wake without a waiting coroutine does nothing. To wait for a
/// condition, check it under a [`CoMutex`](super::CoMutex), and pass its guard to
/// [`wait_unlocked`](CoQueue::wait_unlocked).
#[derive(Debug, Default)]
pub struct CoQueue {
    waiting: Lock<VecDeque<Arc<Waiting>>>,
}

/// Takes a coroutine that is dropped while it waits out of the queue. If it was already chosen, the
/// next one is chosen instead.
struct Place<'a> {
    queue: &'a CoQueue,
    own: Arc<Waiting>,
    is_done: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut waiting = self.queue.waiting.lock();
        let before = waiting.len();
        waiting.retain(|other| !Arc::ptr_eq(other, &self.own));
        let was_chosen = waiting.len() == before;
        drop(waiting);
        if was_chosen {
            self.queue.wake_one();
        }
    }
}

impl CoQueue {
    /// Creates an empty queue.
    pub fn new() -> CoQueue {
        CoQueue::default()
    }

    /// Waits until the coroutine is woken.
    ///
    /// # Errors
    /// If it holds a lock of its thread.
    pub fn wait(&self, yielder: &Yielder<'_>) -> Result<(), HoldsLock> {
        self.wait_unlocked(yielder, ())
    }

    /// Takes its place in the queue, then drops `guard`, then waits: so it does not miss a wake by
    /// the next holder.
    ///
    /// # Errors
    /// If it holds another lock of its thread.
    pub fn wait_unlocked<G>(&self, yielder: &Yielder<'_>, guard: G) -> Result<(), HoldsLock> {
        let own = Waiting::new();
        let mut place = Place {
            queue: self,
            own: own.clone(),
            is_done: false,
        };
        self.waiting.lock().push_back(own);
        drop(guard);
        place.own.wait(yielder)?;
        place.is_done = true;
        Ok(())
    }

    /// Wakes the coroutine that has waited longest. Returns false if none waits.
    pub fn wake_one(&self) -> bool {
        let first = self.waiting.lock().pop_front();
        if let Some(first) = &first {
            first.choose();
        }
        first.is_some()
    }

    /// Wakes all waiting coroutines. Returns how many.
    pub fn wake_all(&self) -> usize {
        let all = std::mem::take(&mut *self.waiting.lock());
        all.iter().for_each(|waiting| waiting.choose());
        all.len()
    }

    /// How many coroutines wait.
    pub fn waiting(&self) -> usize {
        self.waiting.lock().len()
    }
}
