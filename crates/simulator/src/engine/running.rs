//! A flow on a CPU: its progress, and when it can be stopped.

use super::job::SimulatedJob;
use crate::costs::PERMILLE;
use crate::workload::Group;

/// The flow that a CPU runs. Time is real time; work is what a CPU of full speed does in that time.
#[derive(Debug)]
pub(super) struct Running {
    pub flow: usize,
    /// The time until which progress is accounted; in the future during a switch.
    accounted_until_ns: u64,
    ran_ns: u64,
    slice_ns: u64,
    /// The fraction of a nanosecond of work that is not yet accounted, in thousandths. Without it
    /// slow CPUs would lose work by rounding at every update.
    remainder: u64,
}

impl Running {
    pub fn new(flow: usize, starts_at_ns: u64, slice_ns: u64) -> Running {
        Running {
            flow,
            accounted_until_ns: starts_at_ns,
            ran_ns: 0,
            slice_ns,
            remainder: 0,
        }
    }

    pub fn ran_ns(&self) -> u64 {
        self.ran_ns
    }

    pub fn is_slice_over(&self) -> bool {
        self.ran_ns >= self.slice_ns
    }

    /// Other flows ran on top until `now_ns`; that time is not charged to this one.
    pub fn resume_at(&mut self, now_ns: u64) {
        self.accounted_until_ns = now_ns;
    }

    /// Accounts for the time until `now_ns` at this speed. Returns the time and the work.
    pub fn advance(&mut self, now_ns: u64, speed_permille: u64) -> (u64, u64) {
        let passed_ns = now_ns.saturating_sub(self.accounted_until_ns);
        self.accounted_until_ns = self.accounted_until_ns.max(now_ns);
        self.ran_ns += passed_ns;
        let work = passed_ns * speed_permille + self.remainder;
        self.remainder = work % u64::from(PERMILLE);
        (passed_ns, work / u64::from(PERMILLE))
    }

    pub fn is_at_checkpoint(&self, job: &SimulatedJob, checkpoint_ns: u64) -> bool {
        job.done_ns.checked_rem(checkpoint_ns).unwrap_or(0) == 0
    }

    /// When the job ends, or reaches the first checkpoint at which it must stop, at this speed.
    pub fn next_point_ns(
        &self,
        job: &SimulatedJob,
        group: &Group,
        must_yield: bool,
        speed_permille: u64,
        now_ns: u64,
    ) -> u64 {
        let begin_ns = self.accounted_until_ns.max(now_ns);
        let time_left_ns = match (must_yield, self.slice_ns) {
            (true, _) => Some(0),
            (false, u64::MAX) => None,
            (false, slice_ns) => Some(slice_ns.saturating_sub(self.ran_ns)),
        };
        let until_stop_ns = time_left_ns.map(|time_ns| {
            let work_ns = time_ns
                .saturating_mul(speed_permille)
                .div_ceil(u64::from(PERMILLE));
            let reached_ns = job.done_ns.saturating_add(work_ns);
            let checkpoint_ns =
                if group.is_whole && !must_yield { u64::MAX } else { group.checkpoint_ns };
            let stop_ns = reached_ns
                .checked_next_multiple_of(checkpoint_ns.max(1))
                .unwrap_or(u64::MAX);
            stop_ns - job.done_ns
        });
        let work_ns = until_stop_ns.unwrap_or(u64::MAX).min(job.left_ns);
        let missing = work_ns
            .saturating_mul(u64::from(PERMILLE))
            .saturating_sub(self.remainder);
        begin_ns.saturating_add(missing.div_ceil(speed_permille))
    }
}

#[cfg(test)]
mod tests {
    use refrain_policy::{Class, Entity};

    use super::*;

    fn group(checkpoint_ns: u64) -> Group {
        Group::cpu_bound("group", Entity::new(Class::Normal)).with_checkpoints(checkpoint_ns)
    }

    fn job(done_ns: u64, left_ns: u64) -> SimulatedJob {
        SimulatedJob {
            arrived_ns: 0,
            left_ns,
            done_ns,
            has_started: true,
        }
    }

    #[test]
    fn flows_stop_only_at_checkpoints() {
        let running = Running::new(0, 100, 1_000);
        let next = |done, left, checkpoint, must_yield| {
            running.next_point_ns(&job(done, left), &group(checkpoint), must_yield, 1000, 0)
        };
        assert_eq!(next(0, 5_000, 0, false), 1_100, "the slice");
        assert_eq!(next(0, 5_000, 300, false), 1_300, "the checkpoint after it");
        assert_eq!(next(0, 500, 300, false), 600, "the end of the job");
        assert_eq!(next(350, 5_000, 300, true), 350, "the next checkpoint");
        assert_eq!(next(300, 5_000, 300, true), 100, "this checkpoint");
        assert_eq!(next(1, 5_000, u64::MAX, true), 5_100, "none inside the job");
        assert!(
            running.is_at_checkpoint(&job(600, 1), 300)
                && !running.is_at_checkpoint(&job(601, 1), 300)
        );
    }

    #[test]
    fn slow_cpus_lose_no_work_by_frequent_updates() {
        let mut updated = Running::new(0, 0, u64::MAX);
        let work: u64 = (1..=1000).map(|now| updated.advance(now, 620).1).sum();
        assert_eq!((work, updated.ran_ns()), (620, 1000));
        let end = updated.next_point_ns(&job(620, 1), &group(0), false, 620, 1000);
        assert_eq!(end, 1002, "1.6 nanoseconds");
    }
}
