//! The counters of the workers, added up for reports.

use std::sync::Arc;
use std::time::Duration;

use super::state::domain::Domain;
use super::state::worker_status::WorkerStatus;
use crate::histogram::TimeHistogram;

/// The counts of one worker since its pool was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerProfile {
    /// Calls of jobs.
    pub jobs: u64,
    /// Slices of flows.
    pub runs: u64,
    /// Slices on top of a job that was preempted at a checkpoint.
    pub nested: u64,
    /// How often it parked in the kernel.
    pub parks: u64,
    /// How many wake-ups it sent.
    pub wakes: u64,
    /// How many of the wake-ups took a system call.
    pub wake_calls: u64,
    /// How often it had to wait for a [`Lock`](crate::Lock).
    pub lock_waits: u64,
    /// The time that it waited for them.
    pub lock_wait: Duration,
    /// How many holders of locks it raised out of the kernel's idle class.
    pub raised: u64,
    /// Time inside flows.
    pub busy: Duration,
    /// The processor time of its thread when it was last idle; zero unless the pool measures gaps.
    pub cpu: Duration,
    /// Gaps between checkpoints; empty unless the pool measures them.
    pub gaps: TimeHistogram,
    /// The time from a request to the checkpoint that acknowledged it.
    pub responses: TimeHistogram,
}

impl WorkerProfile {
    fn from_status(worker: &WorkerStatus) -> WorkerProfile {
        let counters = &worker.counters;
        let mut profile = WorkerProfile {
            jobs: counters.jobs.get(),
            runs: counters.runs.get(),
            nested: counters.nested.get(),
            parks: counters.parks.get(),
            wakes: counters.wakes.get(),
            wake_calls: counters.wake_calls.get(),
            lock_waits: counters.lock_waits.get(),
            lock_wait: Duration::from_nanos(counters.lock_wait_ns.get()),
            raised: counters.raised.get(),
            busy: Duration::from_nanos(counters.busy_ns.get()),
            cpu: Duration::from_nanos(counters.cpu_ns.get()),
            ..WorkerProfile::default()
        };
        worker.gaps.add_to(&mut profile.gaps);
        worker.responses.add_to(&mut profile.responses);
        profile
    }

    fn add(&mut self, other: &WorkerProfile) {
        self.jobs += other.jobs;
        self.runs += other.runs;
        self.nested += other.nested;
        self.parks += other.parks;
        self.wakes += other.wakes;
        self.wake_calls += other.wake_calls;
        self.lock_waits += other.lock_waits;
        self.lock_wait += other.lock_wait;
        self.raised += other.raised;
        self.busy += other.busy;
        self.cpu += other.cpu;
        self.gaps.add(&other.gaps);
        self.responses.add(&other.responses);
    }
}

/// The counts of a pool's workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// One entry for each worker; the idle class comes last.
    pub workers: Vec<WorkerProfile>,
}

impl Profile {
    pub(crate) fn from_domains<'a>(domains: impl Iterator<Item = &'a Arc<Domain>>) -> Profile {
        let workers = domains.flat_map(|domain| &domain.workers);
        Profile {
            workers: workers
                .map(|worker| WorkerProfile::from_status(worker))
                .collect(),
        }
    }

    /// The sum over all workers.
    pub fn sum(&self) -> WorkerProfile {
        let mut sum = WorkerProfile::default();
        self.workers.iter().for_each(|worker| sum.add(worker));
        sum
    }
}
