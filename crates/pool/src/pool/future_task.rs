//! Futures on flows: a future is a job whose steps are its polls, and its waker submits the next
//! poll.
//!
//! The states of a task, in one word:
//!
//! ```text
//!            submit                poll                   Ready
//!   IDLE ───────────▶ SCHEDULED ─────────▶ POLLING ───────────────▶ DONE
//!    ▲   wake                                │  │ wake      Pending
//!    └───────────────────────────────────────┘  └──▶ WOKEN ─────────▶ SCHEDULED
//!                      Pending
//! ```
//!
//! Only the step from IDLE or WOKEN to SCHEDULED submits a poll, so at most one poll of a task is
//! queued or runs, whatever the number of wake-ups. A wake-up during a poll leads to another poll:
//! none is lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use refrain_sync::atomic::{AtomicU32, Ordering};
use refrain_sync::lock;

use super::job::{JobHandle, Promise, Step, catch};
use super::state::domain::Flow;

const IDLE: u32 = 0;
const SCHEDULED: u32 = 1;
const POLLING: u32 = 2;
const WOKEN: u32 = 3;
const DONE: u32 = 4;

#[derive(Debug)]
pub(crate) struct FutureState(AtomicU32);

impl FutureState {
    pub(crate) fn scheduled() -> Self {
        FutureState(AtomicU32::new(SCHEDULED))
    }

    /// A wake-up. Returns whether the caller has to submit a poll.
    pub(crate) fn wake(&self) -> bool {
        // Release, and an exchange even where the state stays the same: the poll that follows has
        // to see what the waker wrote before. (With a load that found SCHEDULED, the model had a
        // poll that did not see the cause of its wake-up.)
        let step = |state| match state {
            IDLE => Some(SCHEDULED),
            POLLING => Some(WOKEN),
            DONE => None,
            same => Some(same),
        };
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        before == Ok(IDLE)
    }

    /// A poll begins. Returns false if there is nothing left to poll.
    pub(crate) fn begin(&self) -> bool {
        self.0.swap(POLLING, Ordering::AcqRel) != DONE
    }

    /// A poll has returned `Pending`. Returns whether the future has to be polled again.
    pub(crate) fn pending(&self) -> bool {
        let to_idle = self
            .0
            .compare_exchange(POLLING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if to_idle.is_ok() {
            return false;
        }
        // An exchange: the next poll has to see what a waker wrote in the meantime.
        self.0.swap(SCHEDULED, Ordering::AcqRel);
        true
    }

    pub(crate) fn finish(&self) {
        self.0.store(DONE, Ordering::Release);
    }
}

type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

struct FutureTask<T> {
    state: FutureState,
    /// Removed when it has ended. Only the one poll that runs takes the lock, so it never blocks.
    future: refrain_sync::Mutex<Option<(BoxedFuture<T>, Promise<T>)>>,
    flow: Flow,
    this: Weak<FutureTask<T>>,
}

impl<T: Send + 'static> FutureTask<T> {
    fn submit(self: Arc<Self>) {
        let flow = self.flow.clone();
        flow.submit_body(Box::new(move || self.poll()));
    }

    fn poll(&self) -> Step {
        let Some(this) = self.this.upgrade() else {
            return Step::Done;
        };
        if !self.state.begin() {
            self.state.finish();
            return Step::Done;
        }
        let waker = Waker::from(this);
        let mut slot = lock(&self.future);
        let Some((future, _)) = slot.as_mut() else {
            self.state.finish();
            return Step::Done;
        };
        let polled = catch(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        let result = match polled {
            Ok(Poll::Pending) => {
                drop(slot);
                return if self.state.pending() { Step::Again } else { Step::Done };
            }
            Ok(Poll::Ready(value)) => Ok(value),
            Err(error) => Err(error),
        };
        self.state.finish();
        let ended = slot.take();
        drop(slot);
        if let Some((future, promise)) = ended {
            // The future is dropped before its owner is notified, so what it held is free by then.
            // Its drop may panic as well.
            let dropped = catch(|| drop(future));
            promise.complete(result.and_then(|value| dropped.map(|()| value)));
        }
        Step::Done
    }
}

impl<T: Send + 'static> Wake for FutureTask<T> {
    fn wake(self: Arc<Self>) {
        if self.state.wake() {
            self.submit();
        }
    }
}

impl Flow {
    /// Runs a future on this flow: each wake-up submits a poll.
    pub fn spawn_future<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JobHandle<T> {
        let (promise, handle) = Promise::new();
        let task = Arc::new_cyclic(|this| FutureTask {
            state: FutureState::scheduled(),
            future: refrain_sync::Mutex::new(Some((Box::pin(future), promise))),
            flow: self.clone(),
            this: this.clone(),
        });
        task.submit();
        handle
    }
}
