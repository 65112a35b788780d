//! A flow on a CPU: how far it got, and when it can be stopped.

use super::engine::Job;
use super::{Group, PERMILLE};

/// The flow that a CPU runs. Time is real time, work is what a CPU of full speed does in that time.
#[derive(Debug)]
pub(super) struct Running {
    pub flow: usize,
    /// Up to here time is booked; lies ahead while the switch lasts.
    seen_ns: u64,
    ran_ns: u64,
    slice_ns: u64,
    /// Work done but not yet a whole nanosecond, thousandths. Without it slow CPUs would lose a little at every look.
    remainder: u64,
}

impl Running {
    pub fn new(flow: usize, starts_at_ns: u64, slice_ns: u64) -> Running {
        Running {
            flow,
            seen_ns: starts_at_ns,
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

    /// Others ran on top until `now_ns`: that time is not its own.
    pub fn go_on_at(&mut self, now_ns: u64) {
        self.seen_ns = now_ns;
    }

    /// Books the time until `now_ns` at this speed: time that passed, and work.
    pub fn advance(&mut self, now_ns: u64, speed_permille: u64) -> (u64, u64) {
        let passed_ns = now_ns.saturating_sub(self.seen_ns);
        self.seen_ns = self.seen_ns.max(now_ns);
        self.ran_ns += passed_ns;
        let work = passed_ns * speed_permille + self.remainder;
        self.remainder = work % u64::from(PERMILLE);
        (passed_ns, work / u64::from(PERMILLE))
    }

    /// Whether the job can be interrupted here.
    pub fn is_at_checkpoint(&self, job: &Job, checkpoint_ns: u64) -> bool {
        job.done_ns.checked_rem(checkpoint_ns).unwrap_or(0) == 0
    }

    /// When the job ends, or reaches the first checkpoint at which it has to stop, at this speed.
    pub fn next_point_ns(
        &self,
        job: &Job,
        group: &Group,
        must_give_way: bool,
        speed_permille: u64,
        now_ns: u64,
    ) -> u64 {
        let begin_ns = self.seen_ns.max(now_ns);
        let time_left_ns = match (must_give_way, self.slice_ns) {
            (true, _) => Some(0),
            (false, u64::MAX) => None,
            (false, slice_ns) => Some(slice_ns.saturating_sub(self.ran_ns)),
        };
        let until_stop_ns = time_left_ns.map(|time_ns| {
            let work_ns = time_ns
                .saturating_mul(speed_permille)
                .div_ceil(u64::from(PERMILLE));
            let reached_ns = job.done_ns.saturating_add(work_ns);
            let checkpoint_ns = if group.is_whole && !must_give_way {
                u64::MAX
            } else {
                group.checkpoint_ns
            };
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
        Group::hog("group", Entity::new(Class::Normal)).checking_each(checkpoint_ns)
    }

    fn job(done_ns: u64, left_ns: u64) -> Job {
        Job {
            arrived_ns: 0,
            left_ns,
            done_ns,
            has_started: true,
        }
    }

    #[test]
    fn stops_are_at_checkpoints_only() {
        let running = Running::new(0, 100, 1_000);
        let next = |done, left, checkpoint, gives_way| {
            running.next_point_ns(&job(done, left), &group(checkpoint), gives_way, 1000, 0)
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
    fn slow_cpus_lose_nothing_by_being_looked_at() {
        let mut often = Running::new(0, 0, u64::MAX);
        let work: u64 = (1..=1000).map(|now| often.advance(now, 620).1).sum();
        assert_eq!((work, often.ran_ns()), (620, 1000));
        let end = often.next_point_ns(&job(620, 1), &group(0), false, 620, 1000);
        assert_eq!(end, 1002, "1.6 nanoseconds");
    }
}
