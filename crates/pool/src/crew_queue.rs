//! The queue between the coordinator and its workers: under one lock, lanes of jobs in one
//! direction and their outcomes in the other.

use std::collections::VecDeque;
#[cfg(not(loom))]
use std::io::PipeReader;
use std::io::{PipeWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain_sync::plain::{Condvar, Mutex, MutexGuard};

use crate::error::JobPanicked;
use crate::lane::Lane;
use crate::pool::job::{JobBody, Step};
#[cfg(not(loom))]
use crate::readiness::{SuspendedJobs, TurnEnd};
use crate::trace;
use refrain_trace::EventKind;

pub(crate) type Outcome<E> = Result<E, JobPanicked>;

pub(crate) type CrewJob<'env, E> = Box<dyn FnOnce() -> E + Send + 'env>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadGroup {
    Compute,
    Input,
    Output,
}

impl ThreadGroup {
    pub(crate) const COUNT: usize = 3;
    /// The order in which a coordinator without threads serves them: output first and input last,
    /// so that the least data is in flight.
    pub(crate) const DRAIN_ORDER: [ThreadGroup; ThreadGroup::COUNT] = [
        ThreadGroup::Output,
        ThreadGroup::Compute,
        ThreadGroup::Input,
    ];

    pub(crate) fn of(lane: Lane) -> ThreadGroup {
        match lane {
            Lane::Urgent | Lane::Normal | Lane::Background => ThreadGroup::Compute,
            Lane::Input => ThreadGroup::Input,
            Lane::Output => ThreadGroup::Output,
        }
    }

    fn queue_name(self) -> &'static str {
        match self {
            ThreadGroup::Compute => "jobs queued",
            ThreadGroup::Input => "reads queued",
            ThreadGroup::Output => "writes queued",
        }
    }

    fn lanes(self) -> &'static [Lane] {
        match self {
            ThreadGroup::Compute => &[Lane::Urgent, Lane::Normal, Lane::Background],
            // They have a separate queue.
            ThreadGroup::Input => &[],
            ThreadGroup::Output => &[Lane::Output],
        }
    }
}

/// Runs one job; a panic becomes an outcome.
// AssertUnwindSafe: a job owns what it touches or borrows it shared. The unwinding drops what the
// job owned, so nothing sees it half changed except through the job's own shared state.
pub(crate) fn run<E>(lane: Lane, job: CrewJob<'_, E>) -> Outcome<E> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|payload| JobPanicked::new(lane, &*payload))
}

struct QueueState<'env, E> {
    lanes: [VecDeque<CrewJob<'env, E>>; Lane::COUNT],
    /// The jobs of [`Lane::Input`]. They deliver their events themselves.
    input: VecDeque<JobBody>,
    /// Whether the thread of the input jobs sleeps until it is woken through its pipe.
    input_polls: bool,
    outcomes: VecDeque<Outcome<E>>,
    /// Workers that found no job, the most recent one last.
    idle: Vec<usize>,
    /// For each group that blocks, the number of sleeping threads that have not been woken. It may
    /// be too large after a spurious wake-up (a wake-up then wakes nothing), never too small (a
    /// wake-up would be lost).
    sleeping: [usize; ThreadGroup::COUNT],
    workers: usize,
    coordinator_waits: bool,
    is_closed: bool,
}

/// The coordinator is woken when this many outcomes are queued.
const OUTCOMES_QUEUED_MAX: usize = 8;

impl<'env, E> QueueState<'env, E> {
    fn waiting(&self, group: ThreadGroup) -> usize {
        if group == ThreadGroup::Input {
            return self.input.len();
        }
        let lanes = group.lanes().iter();
        lanes.map(|&lane| self.lanes[lane as usize].len()).sum()
    }

    fn take(&mut self, group: ThreadGroup) -> Option<(Lane, CrewJob<'env, E>)> {
        let lanes = group.lanes().iter();
        let taken = lanes.copied().find_map(|lane| {
            let job = self.lanes[lane as usize].pop_front()?;
            Some((lane, job))
        })?;
        self.trace_length(group);
        Some(taken)
    }

    #[inline(always)]
    fn trace_length(&self, group: ThreadGroup) {
        trace::count(group.queue_name(), || self.waiting(group) as u64);
    }
}

/// The shared queue. Jobs run and are dropped outside its lock, so they never poison it.
pub(crate) struct CrewQueue<'env, E> {
    state: Mutex<QueueState<'env, E>>,
    work: [Condvar; ThreadGroup::COUNT],
    outcome: Condvar,
    input_wake: OnceLock<PipeWriter>,
    input_blocks: AtomicBool,
}

#[cfg(not(loom))]
enum NextInput {
    Job(JobBody),
    /// There is no job now.
    Nothing,
    Closed,
}

impl<'env, E> CrewQueue<'env, E> {
    pub(crate) fn new() -> Self {
        CrewQueue {
            state: Mutex::new(QueueState {
                lanes: std::array::from_fn(|_| VecDeque::new()),
                input: VecDeque::new(),
                input_polls: false,
                outcomes: VecDeque::new(),
                idle: Vec::new(),
                sleeping: [0; ThreadGroup::COUNT],
                workers: 0,
                coordinator_waits: false,
                is_closed: false,
            }),
            work: std::array::from_fn(|_| Condvar::new()),
            outcome: Condvar::new(),
            input_wake: OnceLock::new(),
            input_blocks: AtomicBool::new(false),
        }
    }

    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, QueueState<'env, E>> {
        self.state.lock()
    }

    /// Queues a job and wakes one sleeping thread of its group. If the job is for an idle compute
    /// worker, returns its number, and the caller has to run it.
    #[must_use]
    pub(crate) fn push(&self, lane: Lane, job: CrewJob<'env, E>) -> Option<usize> {
        let group = ThreadGroup::of(lane) as usize;
        let mut state = self.lock();
        state.lanes[lane as usize].push_back(job);
        state.trace_length(ThreadGroup::of(lane));
        if group == ThreadGroup::Compute as usize {
            return state.idle.pop();
        }
        self.wake_group(state, group);
        None
    }

    /// Queues a job of [`Lane::Input`], which delivers its event itself.
    pub(crate) fn push_input(&self, job: JobBody) {
        let mut state = self.lock();
        state.input.push_back(job);
        state.trace_length(ThreadGroup::Input);
        let polls = std::mem::take(&mut state.input_polls);
        self.wake_group(state, ThreadGroup::Input as usize);
        if polls {
            self.wake_polling();
        }
    }

    fn wake_group(&self, mut state: MutexGuard<'_, QueueState<'env, E>>, group: usize) {
        let wake = state.sleeping[group] > 0;
        if wake {
            state.sleeping[group] -= 1;
        }
        drop(state);
        if wake {
            self.work[group].notify_one();
        }
    }

    fn wake_polling(&self) {
        if let Some(mut wake) = self.input_wake.get() {
            // The pipe is open and never holds more than a few bytes.
            let _ = wake.write(&[1]);
        }
    }

    pub(crate) fn add_worker(&self) -> usize {
        let mut state = self.lock();
        state.workers += 1;
        state.workers - 1
    }

    /// One step of a worker: runs a job, if there is one. Otherwise the worker becomes idle, and
    /// the next submission runs it again.
    pub(crate) fn run_step(&self, worker: usize) -> Step {
        let mut state = self.lock();
        if state.is_closed {
            return Step::Done;
        }
        let Some((lane, job)) = state.take(ThreadGroup::Compute) else {
            state.idle.push(worker);
            self.wake_coordinator_when_idle(&mut state);
            return Step::Done;
        };
        drop(state);
        let outcome = run(lane, job);
        self.deliver(ThreadGroup::Compute, outcome);
        Step::Again
    }

    /// Wakes the coordinator if outcomes are queued. Called by a worker that finds no job.
    fn wake_coordinator_when_idle(&self, state: &mut QueueState<'env, E>) {
        if !state.outcomes.is_empty() && std::mem::take(&mut state.coordinator_waits) {
            self.outcome.notify_one();
        }
    }

    pub(crate) fn queued(&self) -> usize {
        let state = self.lock();
        state.input.len() + state.lanes.iter().map(VecDeque::len).sum::<usize>()
    }

    /// The loop of a thread that blocks: serves one group until the queue closes.
    pub(crate) fn serve(&self, group: ThreadGroup) {
        while let Some((lane, job)) = self.wait_for_job(group) {
            let outcome = run(lane, job);
            self.deliver(group, outcome);
        }
    }

    /// The loop of the thread of the input jobs, until the queue closes. Jobs that wait for
    /// descriptors are suspended, and dropped at the end.
    #[cfg(not(loom))]
    pub(crate) fn serve_input(&self) {
        let mut suspended = SuspendedJobs::default();
        let mut wake = None;
        loop {
            let may_sleep = match self.next_input(suspended.is_empty()) {
                NextInput::Closed => return,
                NextInput::Job(job) => {
                    self.turn_ended(suspended.start(job));
                    false
                }
                NextInput::Nothing => true,
            };
            if !suspended.is_empty() {
                let wake = wake.get_or_insert_with(|| self.make_wake()).as_ref();
                suspended.run_ready(may_sleep, wake, &mut |end| self.turn_ended(end));
            }
        }
    }

    #[cfg(loom)]
    pub(crate) fn serve_input(&self) {}

    /// The reading end of the pipe that wakes the thread. `None` if the system refuses a pipe.
    #[cfg(not(loom))]
    fn make_wake(&self) -> Option<PipeReader> {
        let (reader, writer) = std::io::pipe().ok()?;
        self.input_wake.set(writer).ok()?;
        Some(reader)
    }

    #[cfg(not(loom))]
    fn turn_ended(&self, end: TurnEnd) {
        match end {
            TurnEnd::Quiet => {}
            TurnEnd::Panicked(payload) => {
                let panicked = JobPanicked::new(Lane::Input, &*payload);
                self.deliver(ThreadGroup::Input, Err(panicked));
            }
            TurnEnd::NoStack(job) => {
                self.input_blocks.store(true, Ordering::Relaxed);
                self.run_input(job);
            }
        }
    }

    /// Runs an input job that blocks where it waits.
    pub(crate) fn run_input(&self, mut job: JobBody) {
        // AssertUnwindSafe: see `run`.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(&mut job)) {
            let panicked = JobPanicked::new(Lane::Input, &*payload);
            self.deliver(ThreadGroup::Input, Err(panicked));
        }
    }

    pub(crate) fn input_blocks(&self) -> bool {
        self.input_blocks.load(Ordering::Relaxed)
    }

    /// Returns the next input job. If the queue is empty, sleeps until a job comes, or, if it must
    /// not sleep, returns so that the thread can wait for descriptors.
    #[cfg(not(loom))]
    fn next_input(&self, may_sleep: bool) -> NextInput {
        let mut state = self.lock();
        loop {
            state.input_polls = false;
            if state.is_closed {
                return NextInput::Closed;
            }
            if let Some(job) = state.input.pop_front() {
                state.trace_length(ThreadGroup::Input);
                return NextInput::Job(job);
            }
            if !may_sleep {
                self.wake_coordinator_when_idle(&mut state);
                state.input_polls = true;
                return NextInput::Nothing;
            }
            state = self.sleep(state, ThreadGroup::Input);
        }
    }

    /// Sleeps until the calling thread, which belongs to `group`, has reason to look for a job.
    fn sleep<'queue>(
        &'queue self,
        mut state: MutexGuard<'queue, QueueState<'env, E>>,
        group: ThreadGroup,
    ) -> MutexGuard<'queue, QueueState<'env, E>> {
        state.sleeping[group as usize] += 1;
        self.wake_coordinator_when_idle(&mut state);
        let traced_from_ns = trace::begin();
        let state = self.work[group as usize].wait(state);
        if let Some(start_ns) = traced_from_ns {
            trace::span(EventKind::Idle, "", start_ns, 1);
        }
        state
    }

    /// Takes the next input job without waiting, for a coordinator that runs it itself.
    pub(crate) fn take_input(&self) -> Option<JobBody> {
        self.lock().input.pop_front()
    }

    fn wait_for_job(&self, group: ThreadGroup) -> Option<(Lane, CrewJob<'env, E>)> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(found) = state.take(group) {
                return Some(found);
            }
            state = self.sleep(state, group);
        }
    }

    /// Queues an outcome, and wakes the coordinator if necessary.
    ///
    /// That is not necessary for a compute outcome while every worker has a next job: each wake-up
    /// takes a processor from one of the workers, so the coordinator should take several outcomes
    /// at once. A worker that finds no job wakes it in any case. Blocking jobs take long, and their
    /// outcomes are delivered at once.
    pub(crate) fn deliver(&self, group: ThreadGroup, outcome: Outcome<E>) {
        let mut state = self.lock();
        state.outcomes.push_back(outcome);
        let is_busy = group == ThreadGroup::Compute && state.waiting(group) >= state.workers;
        let wake =
            state.coordinator_waits && (!is_busy || state.outcomes.len() >= OUTCOMES_QUEUED_MAX);
        state.coordinator_waits &= !wake;
        drop(state);
        if wake {
            self.outcome.notify_one();
        }
    }

    /// Takes the next job of a group without waiting, for a coordinator that serves it itself.
    pub(crate) fn take(&self, group: ThreadGroup) -> Option<(Lane, CrewJob<'env, E>)> {
        self.lock().take(group)
    }

    pub(crate) fn try_outcome(&self) -> Option<Outcome<E>> {
        self.lock().outcomes.pop_front()
    }

    /// Waits for an outcome, at most `timeout`. The caller ensures that a job is in flight.
    pub(crate) fn wait_for_outcome(&self, timeout: Option<Duration>) -> Option<Outcome<E>> {
        // Called under the lock, before every sleep and after every wake-up.
        let keep_waiting = |state: &mut QueueState<'env, E>| {
            state.coordinator_waits = state.outcomes.is_empty();
            state.coordinator_waits
        };
        let _wait = trace::waiting(trace::RESULTS);
        let state = self.lock();
        let mut state = match timeout {
            None => self.outcome.wait_while(state, keep_waiting),
            Some(timeout) => (self.outcome).wait_while_for(state, timeout, keep_waiting),
        };
        state.coordinator_waits = false;
        state.outcomes.pop_front()
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let unstarted: Vec<_> = state.lanes.iter_mut().map(std::mem::take).collect();
        let unstarted = (unstarted, std::mem::take(&mut state.input));
        let polls = std::mem::take(&mut state.input_polls);
        drop(state);
        for condvar in &self.work {
            condvar.notify_all();
        }
        if polls {
            self.wake_polling();
        }
        // Outside the lock: dropping a job may drop large buffers or run code of its owner.
        drop(unstarted);
    }
}
