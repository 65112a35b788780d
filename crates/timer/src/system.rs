//! The timers of several workers, shared by all threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::callbacks::{Notify, Sink};
use crate::timer_id::{Expired, TimerId};
use crate::workers::Workers;

/// The timers of a number of workers. All calls take `&self` and can be made from any thread.
///
/// Times are nanoseconds of the caller's clock; the system has no clock. `P` is the payload that is
/// delivered when a timer fires.
pub struct TimerSystem<P, N = ()> {
    workers: Workers<P, N>,
}

/// How many timers are removed in one critical section. They are delivered after it, so a burst
/// does not block other threads.
const EXPIRED_PER_LOCK: usize = 64;

impl<P, N: Notify> TimerSystem<P, N> {
    /// Returns a system for workers `0..workers`. `notify` is called when the next deadline of a
    /// worker becomes earlier.
    pub fn new(workers: usize, notify: N) -> TimerSystem<P, N> {
        TimerSystem {
            workers: Workers::new(workers, notify),
        }
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Adds a timer at `worker`. Once the time is `deadline_ns`, [`TimerSystem::expire`] for that
    /// worker delivers `payload`. A deadline in the past fires at the next such call.
    ///
    /// # Panics
    /// If the worker does not exist, as for all methods that take a worker.
    pub fn add(&self, worker: usize, deadline_ns: u64, payload: P) -> TimerId {
        let to = self.workers.worker(worker);
        let mut shard = to.lock();
        let id = shard.insert(deadline_ns, payload);
        let is_earlier = to.lower_next_ns(deadline_ns);
        drop(shard);
        self.workers.notify(worker, is_earlier, deadline_ns);
        id
    }

    /// Cancels a timer and returns its payload, or `None` if it has fired or was cancelled before.
    ///
    /// Among all attempts to cancel or fire a timer exactly one succeeds.
    #[inline]
    pub fn cancel(&self, id: TimerId) -> Option<P> {
        // Read before the lock: see `TimerId::deadline_ns`.
        let TimerId {
            worker,
            key,
            deadline_ns,
        } = id;
        self.workers.worker(worker).lock().cancel(key, deadline_ns)
    }

    /// When `worker` must check its timers; [`NEVER_NS`](crate::NEVER_NS) if it has none. One load.
    ///
    /// It may be too early if that timer was cancelled. After [`TimerSystem::expire`] it is later
    /// than the `now_ns` of that call, unless timers were added since.
    pub fn next_ns(&self, worker: usize) -> u64 {
        self.workers.worker(worker).next_ns()
    }

    /// The number of timers that are pending at `worker`.
    pub fn pending(&self, worker: usize) -> usize {
        self.workers.worker(worker).lock().pending()
    }

    /// The number of records of a worker without pending timers. It must be 0; otherwise records
    /// leak.
    #[cfg(any(test, feature = "property"))]
    pub(crate) fn leaked_records(&self, worker: usize) -> usize {
        self.workers.worker(worker).lock().leaked_records()
    }

    /// Delivers to `sink` the timers of `worker` whose deadline is not after `now_ns`, in the order
    /// of deadline and then of addition. Returns their number. Any thread may call it for any
    /// worker.
    ///
    /// Timers that the sink adds are left to the next call, so the call terminates. If the sink
    /// panics, the rest of its batch is delivered before the panic is resumed.
    pub fn expire(&self, worker: usize, now_ns: u64, sink: &impl Sink<P>) -> usize {
        if self.next_ns(worker) > now_ns {
            return 0;
        }
        let pending_before = self.pending(worker);
        let mut batch = Vec::new();
        let mut delivered = 0;
        loop {
            self.take_due(worker, now_ns, &mut batch);
            let taken = batch.len();
            delivered += taken;
            deliver(worker, &mut batch, sink);
            if taken < EXPIRED_PER_LOCK || delivered >= pending_before {
                return delivered;
            }
        }
    }

    /// Removes the next due timers, which can then no longer be cancelled.
    fn take_due(&self, worker: usize, now_ns: u64, batch: &mut Vec<Expired<P>>) {
        let at = self.workers.worker(worker);
        let mut shard = at.lock();
        while batch.len() < EXPIRED_PER_LOCK
            && let Some(event) = shard.pop_due(now_ns)
        {
            batch.push(event);
        }
        at.set_next_ns(shard.next_ns());
    }
}

/// Delivers all of `batch`. If the sink panics, resumes the first panic after the last delivery.
// AssertUnwindSafe: the event is moved into the call, and the caller owns the sink and sees the
// panic.
fn deliver<P>(worker: usize, batch: &mut Vec<Expired<P>>, sink: &impl Sink<P>) {
    let mut panic = None;
    for event in batch.drain(..) {
        let outcome = catch_unwind(AssertUnwindSafe(|| sink.expired(worker, event)));
        panic = panic.or(outcome.err());
    }
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}
