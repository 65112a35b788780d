//! Waits for a descriptor in code that looks as if it blocked.
//!
//! `unsafe` here: the descriptors that suspended coroutines wait for are known by their numbers.
//! Each is borrowed on the stack of a suspended coroutine, so it is open.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::DefaultStack;
use refrain_trace::EventKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::coroutine::{Coroutine, is_suspendable, suspend_current};
use crate::pool::job::JobBody;
use crate::stages;
use crate::trace;

/// A poll that only looks.
const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// How often a thread that nobody can wake looks for jobs.
const WITHOUT_WAKE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// How many jobs of a thread may wait; further ones block. About as many descriptors as a process
/// may usually open. The stack of each takes two of the 65,530 mappings that Linux usually allows.
const WAITING_MAX: usize = 1_000;

/// How many stacks are kept for further jobs, with the memory that they have used.
const IDLE_STACKS_MAX: usize = 4;

thread_local! {
    /// What the coroutine waits for that has just been suspended.
    static AWAITED: Cell<Option<RawFd>> = const { Cell::new(None) };
}

/// Waits until `descriptor` has data, its end or an error, while the calling thread does other
/// things. Returns false if that is impossible; the caller then has to wait by itself.
///
/// This works in jobs of [`Lane::Input`](crate::Lane::Input), which are coroutines. While a job
/// waits, its thread runs the other jobs of the lane. When the crew ends, a waiting job is dropped:
/// its stack is unwound from here, as by a panic. A job is not suspended while it holds a
/// [`Lock`](crate::Lock), and elsewhere there is nothing to suspend.
///
/// Call it before each read of a pipe, a socket or a terminal. If something can be read, it costs
/// one system call.
pub fn suspend_until_readable(descriptor: impl AsFd) -> bool {
    if !is_suspendable() {
        return false;
    }
    let descriptor = descriptor.as_fd();
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    if poll(&mut polled, Some(&AT_ONCE)).is_ok_and(|count| count > 0) {
        return true;
    }
    AWAITED.set(Some(descriptor.as_raw_fd()));
    let set_aside = stages::set_aside();
    let was_suspended = suspend_current();
    drop(set_aside);
    if !was_suspended {
        AWAITED.set(None);
    }
    was_suspended
}

pub(crate) enum TurnEnd {
    /// The job is done, or waits.
    Quiet,
    Panicked(Box<dyn std::any::Any + Send>),
    /// There was no stack for it. It has not run yet.
    NoStack(JobBody),
}

struct Waiting {
    coroutine: Coroutine,
    descriptor: RawFd,
}

/// One thread's jobs that wait for descriptors. Dropping it unwinds their stacks.
#[derive(Default)]
pub(crate) struct SuspendedJobs {
    waiting: Vec<Waiting>,
    idle_stacks: Vec<DefaultStack>,
}

impl SuspendedJobs {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn start(&mut self, job: JobBody) -> TurnEnd {
        match self.take_stack() {
            Some(stack) => self.enter(Coroutine::new(stack, job)),
            None => TurnEnd::NoStack(job),
        }
    }

    fn take_stack(&mut self) -> Option<DefaultStack> {
        if self.waiting.len() >= WAITING_MAX {
            return None;
        }
        self.idle_stacks.pop().or_else(Coroutine::new_stack)
    }

    fn enter(&mut self, mut coroutine: Coroutine) -> TurnEnd {
        let start_ns = trace::begin();
        // AssertUnwindSafe: what the job owned was dropped; see `crew_events::run`.
        let turn = catch_unwind(AssertUnwindSafe(|| coroutine.enter()));
        if coroutine.has_ended() {
            if self.idle_stacks.len() < IDLE_STACKS_MAX {
                self.idle_stacks.push(coroutine.into_stack());
            }
            return turn.map_or_else(TurnEnd::Panicked, |()| TurnEnd::Quiet);
        }
        if let Some(start_ns) = start_ns {
            trace::span(EventKind::Stage, "read", start_ns, 0);
        }
        if let Some(descriptor) = AWAITED.take() {
            self.waiting.push(Waiting {
                coroutine,
                descriptor,
            });
        }
        TurnEnd::Quiet
    }

    /// Runs the jobs whose descriptors are ready. If `may_sleep`, waits for one, or for a byte in
    /// `wake`. `ended` receives the panics.
    pub(crate) fn run_ready(
        &mut self,
        may_sleep: bool,
        wake: Option<&PipeReader>,
        ended: &mut dyn FnMut(TurnEnd),
    ) {
        for waiting in self.take_ready(may_sleep, wake) {
            ended(self.enter(waiting.coroutine));
        }
    }

    /// The jobs whose descriptors are ready, in the order in which they began to wait.
    fn take_ready(&mut self, may_sleep: bool, wake: Option<&PipeReader>) -> Vec<Waiting> {
        let timeout = match (may_sleep, wake) {
            (false, _) => Some(&AT_ONCE),
            (true, None) => Some(&WITHOUT_WAKE),
            (true, Some(_)) => None,
        };
        // SAFETY: `suspend_until_readable` borrows it on the stack of this coroutine, which is
        // suspended until the end of this function.
        let descriptor = |waiting: &Waiting| unsafe { BorrowedFd::borrow_raw(waiting.descriptor) };
        let descriptors: Vec<_> = (self.waiting.iter().map(descriptor))
            .chain(wake.map(|wake| wake.as_fd()))
            .collect();
        let mut polled: Vec<_> = (descriptors.iter())
            .map(|descriptor| PollFd::new(descriptor, PollFlags::IN))
            .collect();
        let stage = may_sleep.then(|| stages::stage("read", 0));
        // The following reads no longer wait.
        let wait = may_sleep.then(|| trace::waiting(trace::Device::Stream.name()));
        let result = poll(&mut polled, timeout);
        drop((wait, stage));
        let is_ready: Vec<_> = (polled.iter())
            .map(|polled| match result {
                Ok(_) => !polled.revents().is_empty(),
                // Next time.
                Err(rustix::io::Errno::INTR) => false,
                // Waiting is impossible: they block in their reads.
                Err(_) => true,
            })
            .collect();
        if let (Ok(_), Some(mut wake), Some(true)) =
            (result, wake, is_ready.get(self.waiting.len()).copied())
        {
            // A byte that remains wakes once more.
            let _ = wake.read(&mut [0; 64]);
        }
        let mut is_ready = is_ready.into_iter();
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (ready, waiting) = all.partition(|_| is_ready.next().unwrap_or(false));
        self.waiting = waiting;
        ready
    }
}

#[cfg(test)]
#[path = "readiness_tests.rs"]
mod tests;
