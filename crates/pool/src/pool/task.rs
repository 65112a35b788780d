//! Futures on flows: a future is a job whose pieces are its polls, and its waker submits the next one.
//!
//! States of a task, in one word:
//!
//! ```text
//!            submit                poll                   Ready
//!   IDLE ───────────▶ SCHEDULED ─────────▶ POLLING ───────────────▶ DONE
//!    ▲   wake                                │  │ wake      Pending
//!    └───────────────────────────────────────┘  └──▶ WOKEN ─────────▶ SCHEDULED
//!                      Pending
//! ```
//!
//! Only the step from IDLE or WOKEN to SCHEDULED submits a poll, so at most one poll of a task is queued or runs, whatever the number
//! of wake-ups, and a wake-up during a poll leads to one more: none is lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use refrain_timer::sync::atomic::{AtomicU32, Ordering};
use refrain_timer::sync::lock;

use super::Step;
use super::flow::Flow;
use super::job::{JobHandle, Promise, catch};

const IDLE: u32 = 0;
const SCHEDULED: u32 = 1;
const POLLING: u32 = 2;
const WOKEN: u32 = 3;
const DONE: u32 = 4;

/// The word of a task. See the head of the file.
#[derive(Debug)]
pub(crate) struct TaskState(AtomicU32);

impl TaskState {
    pub(crate) fn scheduled() -> Self {
        TaskState(AtomicU32::new(SCHEDULED))
    }

    /// A wake-up; true if the caller has to submit a poll.
    pub(crate) fn wake(&self) -> bool {
        // Release, and an exchange also where the state stays: what the waker wrote before it woke has to be seen by the poll that
        // follows. (When it only looked and found SCHEDULED, the model had a poll begin that did not see the cause.)
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

    /// A poll begins; false if there is nothing to poll any more.
    pub(crate) fn begin(&self) -> bool {
        self.0.swap(POLLING, Ordering::AcqRel) != DONE
    }

    /// A poll ended without the future having ended; true if it has to be polled again.
    pub(crate) fn pending(&self) -> bool {
        let to_idle = self
            .0
            .compare_exchange(POLLING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if to_idle.is_ok() {
            return false;
        }
        // An exchange: a waker may have come since, and what it wrote is to be seen.
        self.0.swap(SCHEDULED, Ordering::AcqRel);
        true
    }

    /// The future has ended.
    pub(crate) fn finish(&self) {
        self.0.store(DONE, Ordering::Release);
    }
}

type Polled<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A future and where it runs.
struct Task<T> {
    state: TaskState,
    /// Taken away when it has ended. Only the one poll that runs has the lock, so nobody waits for it.
    future: refrain_timer::sync::Mutex<Option<(Polled<T>, Promise<T>)>>,
    flow: Flow,
    me: Weak<Task<T>>,
}

impl<T: Send + 'static> Task<T> {
    fn submit(self: Arc<Self>) {
        let flow = self.flow.clone();
        flow.submit_body(Box::new(move || self.poll()));
    }

    fn poll(&self) -> Step {
        let Some(me) = self.me.upgrade() else {
            return Step::Done;
        };
        if !self.state.begin() {
            self.state.finish();
            return Step::Done;
        }
        let waker = Waker::from(me);
        let mut slot = lock(&self.future);
        let Some((future, _)) = slot.as_mut() else {
            self.state.finish();
            return Step::Done;
        };
        let polled = catch(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        let result = match polled {
            Ok(Poll::Pending) => {
                drop(slot);
                return match self.state.pending() {
                    true => Step::Again,
                    false => Step::Done,
                };
            }
            Ok(Poll::Ready(value)) => Ok(value),
            Err(error) => Err(error),
        };
        self.state.finish();
        let ended = slot.take();
        drop(slot);
        if let Some((future, promise)) = ended {
            // The future goes before its owner hears: what it held is free by then. Its drop may panic as well.
            let dropped = catch(|| drop(future));
            promise.keep(result.and_then(|value| dropped.map(|()| value)));
        }
        Step::Done
    }
}

impl<T: Send + 'static> Wake for Task<T> {
    fn wake(self: Arc<Self>) {
        if self.state.wake() {
            self.submit();
        }
    }
}

/// Polls `future` on `flow` until it ends.
pub(crate) fn spawn<T: Send + 'static>(
    flow: &Flow,
    future: impl Future<Output = T> + Send + 'static,
) -> JobHandle<T> {
    let (promise, handle) = Promise::new();
    let task = Arc::new_cyclic(|me| Task {
        state: TaskState::scheduled(),
        future: refrain_timer::sync::Mutex::new(Some((Box::pin(future), promise))),
        flow: flow.clone(),
        me: me.clone(),
    });
    task.submit();
    handle
}
