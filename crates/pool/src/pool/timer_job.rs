//! Timers whose expiry submits a job to a flow.
//!
//! Each worker fires its own: between two jobs, at checkpoints, and when it wakes
//! (`worker/alarm.rs`).

use std::time::Duration;

use refrain_policy::topology::CpuId;
use refrain_timer::{Expired, NEVER_NS, Notify, TimerId, deadline_after};

use super::state::domain::{Domain, Flow, TimerJob, TimerWaker};

impl TimerJob {
    /// Creates a `job` to be submitted to `flow`. If the timer is cancelled, the job is dropped.
    pub(crate) fn new(flow: &Flow, job: impl FnOnce() + Send + 'static) -> TimerJob {
        TimerJob {
            flow: flow.clone(),
            body: Box::new(job),
        }
    }
}

impl Notify for TimerWaker {
    /// Wakes the worker if it sleeps. One that is busy looks by itself.
    fn earlier(&self, worker: usize, deadline_ns: u64) {
        if let Some(domain) = self.0.upgrade() {
            domain.remind(CpuId::new(worker), deadline_ns);
        }
    }
}

impl Domain {
    /// Adds a timer at the calling worker, so that workers do not contend for one lock. For other
    /// threads at an idle worker, which has nothing else to do; if there is none, at the first.
    pub(crate) fn add_timer(&self, delay: Duration, job: TimerJob) -> TimerId {
        let caller = self.with_caller(|worker| worker.cpu.index());
        let worker = caller.or_else(|| {
            let idle = self.idle.mask();
            idle.iter()
                .map(CpuId::index)
                .find(|&worker| self.workers[worker].thread() != 0)
        });
        let deadline_ns = deadline_after(self.now_ns(), delay);
        self.timers.add(worker.unwrap_or(0), deadline_ns, job)
    }

    /// Fires the due timers of `worker`, which may be another than the calling one. Returns their
    /// number.
    pub(crate) fn fire_timers(&self, worker: CpuId, now_ns: u64) -> usize {
        let submit = |_: usize, event: Expired<TimerJob>| {
            let TimerJob { flow, body } = event.payload;
            flow.submit_body(body);
        };
        self.timers.expire(worker.index(), now_ns, &submit)
    }

    /// Drops all timers, so that what they own (flows, and through them the domain) is freed.
    pub(crate) fn drop_timers(&self) {
        for worker in 0..self.timers.workers() {
            self.timers
                .expire(worker, NEVER_NS, &|_: usize, event| drop(event));
        }
    }
}
