//! What a timer system calls: the receiver of expired timers, and the waker of workers.

use crate::timer_id::Expired;

/// Receives expired timers. A pool's sink starts or wakes the flow that the payload names.
pub trait Sink<P> {
    /// Takes a timer that expired at `worker`.
    ///
    /// Called once for each timer, without any lock held, by the thread that called
    /// [`TimerSystem::expire`](crate::TimerSystem::expire). It may use the system. It should be
    /// short: long work belongs elsewhere.
    fn expired(&self, worker: usize, event: Expired<P>);
}

impl<P, F: Fn(usize, Expired<P>)> Sink<P> for F {
    fn expired(&self, worker: usize, event: Expired<P>) {
        self(worker, event);
    }
}

/// Wakes workers whose next deadline has become earlier.
pub trait Notify: Sync {
    /// `worker` must check its timers at `deadline_ns`.
    ///
    /// Called without any lock held, after [`TimerSystem::next_ns`](crate::TimerSystem::next_ns)
    /// has been updated. It must wake a worker that sleeps *or is about to sleep*, as unparking a
    /// thread does.
    fn earlier(&self, worker: usize, deadline_ns: u64);
}

/// Does nothing: for workers that poll.
impl Notify for () {
    fn earlier(&self, _worker: usize, _deadline_ns: u64) {}
}
