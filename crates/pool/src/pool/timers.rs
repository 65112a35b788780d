//! Timers whose expiry is a job on a flow of one's choice.
//!
//! The pacer drives them: it sleeps until the next deadline of any worker, and submits what is due. Workers do not look at their timers
//! themselves: a job that computes passes checkpoints, which read no clock.

use std::sync::Arc;
use std::time::Duration;

use refrain_timer::{Expired, NEVER_NS, Notify, TimerSystem};

use super::flow::Flow;
use super::job::{Body, Step};
use super::pacer::Pacer;
use crate::lock::Holding;

/// What a timer does when it fires: a job, and the flow that runs it.
pub struct Alarm {
    flow: Flow,
    job: Body,
}

impl Alarm {
    /// `job`, to be submitted to `flow`. Cancelled, it is dropped.
    pub fn new(flow: &Flow, job: impl FnOnce() + Send + 'static) -> Alarm {
        let mut job = Some(job);
        Alarm {
            flow: flow.clone(),
            job: Box::new(move || {
                if let Some(job) = job.take() {
                    job();
                }
                Step::Done
            }),
        }
    }

    fn submit(self) {
        self.flow.submit_body(self.job);
    }
}

/// Tells the pacer of an earlier deadline.
pub struct Bell(Arc<Pacer>);

impl Notify for Bell {
    fn earlier(&self, _worker: usize, _deadline_ns: u64) {
        self.0.ring();
    }

    /// If the change passes a checkpoint all the same, no other job runs on top of it.
    fn locked<R>(&self, change: impl FnOnce() -> R) -> R {
        let _holding = Holding::new();
        change()
    }
}

/// The timers of a domain.
pub(crate) struct Timers {
    pub(crate) system: TimerSystem<Alarm, Bell>,
}

impl Timers {
    pub(crate) fn new(workers: usize, pacer: &Arc<Pacer>) -> Timers {
        Timers {
            system: TimerSystem::new(workers, Bell(Arc::clone(pacer))),
        }
    }

    /// Submits what is due.
    pub(crate) fn fire(&self, now_ns: u64) {
        self.expire(now_ns, Alarm::submit);
    }

    /// From `now_ns` until the next deadline; none when nothing is pending.
    pub(crate) fn next_after(&self, now_ns: u64) -> Option<Duration> {
        let workers = 0..self.system.workers();
        let next_ns = workers.map(|worker| self.system.next_ns(worker)).min()?;
        (next_ns != NEVER_NS).then(|| Duration::from_nanos(next_ns.saturating_sub(now_ns)))
    }

    /// Drops all: nothing will fire any more, and what they hold (flows, and through them the domain) is freed.
    pub(crate) fn drop_all(&self) {
        self.expire(NEVER_NS, drop);
    }

    fn expire(&self, now_ns: u64, end: impl Fn(Alarm)) {
        for worker in 0..self.system.workers() {
            if self.system.next_ns(worker) <= now_ns {
                let sink = |_: usize, event: Expired<Alarm>| end(event.payload);
                self.system.expire(worker, now_ns, &sink);
            }
        }
    }
}
