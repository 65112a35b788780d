//! Timers whose expiry submits a job to a flow.
//!
//! The ticker drives them: it sleeps until the earliest deadline of any worker, and submits what is
//! due. Workers do not check their timers themselves: a job that computes passes checkpoints, which
//! read no clock.

use super::job;
use super::state::domain::{Flow, TimerJob};

impl TimerJob {
    /// Creates a `job` to be submitted to `flow`. If the timer is cancelled, the job is dropped.
    pub fn new(flow: &Flow, job: impl FnOnce() + Send + 'static) -> TimerJob {
        TimerJob {
            flow: flow.clone(),
            body: job::body_of(job),
        }
    }

    pub(crate) fn submit(self) {
        self.flow.submit_body(self.body);
    }
}
