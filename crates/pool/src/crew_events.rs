//! The completed jobs of a crew, on their way to its coordinator.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use refrain_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use refrain_sync::plain::{Condvar, Mutex};

use crate::error::JobPanicked;
use crate::lane::Lane;
use crate::trace;

pub(crate) type Outcome<E> = Result<E, JobPanicked>;

/// Runs one job; a panic becomes an outcome.
// AssertUnwindSafe: a job owns what it touches or borrows it shared. The unwinding drops what the
// job owned, so nothing sees it half changed except through the job's own shared state.
pub(crate) fn run<E>(lane: Lane, job: impl FnOnce() -> E) -> Outcome<E> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|payload| JobPanicked::new(lane, &*payload))
}

struct EventState<E> {
    outcomes: VecDeque<Outcome<E>>,
    coordinator_waits: bool,
}

/// The events of a crew. Jobs run and are dropped outside its lock, so they never poison it.
pub(crate) struct Events<E> {
    state: Mutex<EventState<E>>,
    arrived: Condvar,
    /// Submitted compute jobs that have not started.
    unstarted: AtomicUsize,
    /// Whether the coordinator was not woken for an outcome.
    is_held_back: AtomicBool,
    /// Whether the coordinator takes no more events.
    is_closed: AtomicBool,
    /// The largest number of compute jobs that run at once.
    threads: usize,
}

/// The coordinator is woken when this many outcomes are there.
const HELD_BACK_MAX: usize = 8;

impl<E> Events<E> {
    pub(crate) fn new(threads: usize) -> Self {
        Events {
            state: Mutex::new(EventState {
                outcomes: VecDeque::new(),
                coordinator_waits: false,
            }),
            arrived: Condvar::new(),
            unstarted: AtomicUsize::new(0),
            is_held_back: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            threads,
        }
    }

    /// Counts a compute job that is about to be submitted.
    pub(crate) fn count_submitted(&self) {
        let before = self.unstarted.fetch_add(1, Ordering::SeqCst);
        trace::count("jobs queued", || before as u64 + 1);
    }

    /// A compute job has started. When workers will soon find no job, the coordinator gets the
    /// outcomes that were held back.
    pub(crate) fn count_started(&self) {
        let before = self.unstarted.fetch_sub(1, Ordering::SeqCst);
        trace::count("jobs queued", || before.saturating_sub(1) as u64);
        if before <= self.threads && self.is_held_back.load(Ordering::SeqCst) {
            self.wake_coordinator();
        }
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    pub(crate) fn unstarted(&self) -> usize {
        self.unstarted.load(Ordering::SeqCst)
    }

    /// Queues the outcome of a compute job.
    ///
    /// It wakes the coordinator only if a worker may soon find no job: each wake-up takes a
    /// processor from one of the workers, so the coordinator should take several outcomes at once.
    pub(crate) fn deliver_computed(&self, outcome: Outcome<E>) {
        let count = self.push(outcome);
        self.is_held_back.store(true, Ordering::SeqCst);
        if count >= HELD_BACK_MAX || self.unstarted() < self.threads {
            self.wake_coordinator();
        }
    }

    /// Queues the outcome of a blocking job. Those take long, so it wakes the coordinator at once.
    pub(crate) fn deliver(&self, outcome: Outcome<E>) {
        self.push(outcome);
        self.wake_coordinator();
    }

    fn push(&self, outcome: Outcome<E>) -> usize {
        let mut state = self.state.lock();
        state.outcomes.push_back(outcome);
        state.outcomes.len()
    }

    fn wake_coordinator(&self) {
        self.is_held_back.store(false, Ordering::SeqCst);
        if std::mem::take(&mut self.state.lock().coordinator_waits) {
            self.arrived.notify_one();
        }
    }

    pub(crate) fn try_take(&self) -> Option<Outcome<E>> {
        self.state.lock().outcomes.pop_front()
    }

    /// Waits for an outcome, at most `timeout`. The caller ensures that a job is in flight.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Option<Outcome<E>> {
        // Called under the lock, before every sleep and after every wake-up.
        let keep_waiting = |state: &mut EventState<E>| {
            state.coordinator_waits = state.outcomes.is_empty();
            state.coordinator_waits
        };
        let _wait = trace::waiting(trace::RESULTS);
        let state = self.state.lock();
        let mut state = match timeout {
            None => self.arrived.wait_while(state, keep_waiting),
            Some(timeout) => (self.arrived).wait_while_for(state, timeout, keep_waiting),
        };
        state.coordinator_waits = false;
        state.outcomes.pop_front()
    }
}
