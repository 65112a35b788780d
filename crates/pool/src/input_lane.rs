//! The queue and the thread of a crew's blocking reads.
//!
//! The jobs are coroutines: one that waits for a descriptor lets the others run, so one thread
//! reads any number of pipes.

use std::collections::VecDeque;
#[cfg(not(loom))]
use std::io::PipeReader;
use std::io::{PipeWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use refrain_sync::plain::{Condvar, Mutex};
#[cfg(not(loom))]
use refrain_trace::EventKind;

use crate::crew_events::Events;
use crate::error::JobPanicked;
use crate::lane::Lane;
use crate::pool::job::JobBody;
#[cfg(not(loom))]
use crate::readiness::{SuspendedJobs, TurnEnd};
use crate::trace;

#[derive(Default)]
struct InputState {
    /// The jobs that have not started. They deliver their events themselves.
    jobs: VecDeque<JobBody>,
    thread: ThreadState,
    is_closed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ThreadState {
    #[default]
    Awake,
    Sleeps,
    /// It waits for descriptors, and is woken through its pipe.
    Polls,
}

/// The jobs of [`Lane::Input`].
pub(crate) struct InputLane<E> {
    state: Mutex<InputState>,
    work: Condvar,
    /// The writing end of the pipe that wakes the thread while it waits for descriptors.
    wake: OnceLock<PipeWriter>,
    /// Whether a job found no stack, and blocked the thread.
    blocks: AtomicBool,
    events: Arc<Events<E>>,
}

#[cfg(not(loom))]
enum NextInput {
    Job(JobBody),
    /// There is no job now.
    Nothing,
    Closed,
}

impl<E> InputLane<E> {
    pub(crate) fn new(events: &Arc<Events<E>>) -> Self {
        InputLane {
            state: Mutex::default(),
            work: Condvar::new(),
            wake: OnceLock::new(),
            blocks: AtomicBool::new(false),
            events: Arc::clone(events),
        }
    }

    pub(crate) fn push(&self, job: JobBody) {
        let mut state = self.state.lock();
        state.jobs.push_back(job);
        trace::count("reads queued", || state.jobs.len() as u64);
        let thread = std::mem::take(&mut state.thread);
        drop(state);
        self.wake_thread(thread);
    }

    pub(crate) fn unstarted(&self) -> usize {
        self.state.lock().jobs.len()
    }

    /// Whether a job blocked the thread of all others.
    pub(crate) fn blocks(&self) -> bool {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Runs the next job on the calling thread. Returns whether there was one.
    pub(crate) fn run_next_here(&self) -> bool {
        let job = self.state.lock().jobs.pop_front();
        let is_found = job.is_some();
        job.into_iter().for_each(|job| self.run_blocking(job));
        is_found
    }

    /// Drops the jobs that have not started, and ends the thread after the running one.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let unstarted = std::mem::take(&mut state.jobs);
        let thread = std::mem::take(&mut state.thread);
        drop(state);
        self.wake_thread(thread);
        // Outside the lock: dropping a job may drop large buffers or run code of its owner.
        drop(unstarted);
    }

    fn wake_thread(&self, thread: ThreadState) {
        match thread {
            ThreadState::Awake => {}
            ThreadState::Sleeps => self.work.notify_one(),
            ThreadState::Polls => {
                if let Some(mut wake) = self.wake.get() {
                    // The pipe is open and never holds more than a few bytes.
                    let _ = wake.write(&[1]);
                }
            }
        }
    }

    /// Runs a job that blocks where it waits.
    fn run_blocking(&self, job: JobBody) {
        // AssertUnwindSafe: see `crew_events::run`.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(job)) {
            let panicked = JobPanicked::new(Lane::Input, &*payload);
            self.events.deliver(Err(panicked));
        }
    }

    /// The loop of the thread, until the lane closes. Jobs that wait for descriptors are suspended,
    /// and dropped at the end.
    #[cfg(not(loom))]
    pub(crate) fn serve(&self) {
        let mut suspended = SuspendedJobs::default();
        let mut wake = None;
        loop {
            let may_sleep = match self.next(suspended.is_empty()) {
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
    pub(crate) fn serve(&self) {}

    /// The reading end of the pipe that wakes the thread. `None` if the system refuses a pipe.
    #[cfg(not(loom))]
    fn make_wake(&self) -> Option<PipeReader> {
        let (reader, writer) = std::io::pipe().ok()?;
        self.wake.set(writer).ok()?;
        Some(reader)
    }

    #[cfg(not(loom))]
    fn turn_ended(&self, end: TurnEnd) {
        match end {
            TurnEnd::Quiet => {}
            TurnEnd::Panicked(payload) => {
                let panicked = JobPanicked::new(Lane::Input, &*payload);
                self.events.deliver(Err(panicked));
            }
            TurnEnd::NoStack(job) => {
                self.blocks.store(true, Ordering::Relaxed);
                self.run_blocking(job);
            }
        }
    }

    /// Returns the next job. Without one, sleeps until a job comes, or, if it must not sleep,
    /// returns so that the thread can wait for descriptors.
    #[cfg(not(loom))]
    fn next(&self, may_sleep: bool) -> NextInput {
        let mut state = self.state.lock();
        loop {
            state.thread = ThreadState::Awake;
            if state.is_closed {
                return NextInput::Closed;
            }
            if let Some(job) = state.jobs.pop_front() {
                trace::count("reads queued", || state.jobs.len() as u64);
                return NextInput::Job(job);
            }
            if !may_sleep {
                state.thread = ThreadState::Polls;
                return NextInput::Nothing;
            }
            state.thread = ThreadState::Sleeps;
            let traced_from_ns = trace::begin();
            state = self.work.wait(state);
            if let Some(start_ns) = traced_from_ns {
                trace::span(EventKind::Idle, "", start_ns, 1);
            }
        }
    }
}
