//! When a request is repeated, and when not any more.

use std::io;
use std::time::Duration;

use refrain_pool::{Cancellation, Event, Lock};
use refrain_sync::clock::{Clock, RealClock};

use super::options::RemoteOptions;
use super::retry::{RetryBudget, delay_before, spread};

/// A request that failed for good; several readers may report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FetchFailure {
    pub kind: io::ErrorKind,
    pub text: String,
}

/// Decides for all requests to an object or a store.
#[derive(Debug)]
pub(super) struct Repeater {
    deadline: Duration,
    attempts_max: u32,
    cancellation: Cancellation,
    /// Happens when nobody wants an answer any more.
    abandoned: Event,
    clock: RealClock,
    budget: Lock<RetryBudget>,
}

/// The attempts at one request.
#[derive(Debug)]
pub(super) struct Attempts {
    started: Duration,
    /// When the last fruitful attempt ended, or the first began.
    last_progress: Duration,
    pub count: u32,
    /// Consecutive attempts without progress.
    fruitless: u32,
}

impl Repeater {
    pub(super) fn new(options: &RemoteOptions) -> Repeater {
        Repeater {
            deadline: options.deadline,
            attempts_max: options.attempts_max.max(1),
            cancellation: options.cancellation.clone(),
            abandoned: Event::new(),
            clock: RealClock::new(),
            budget: Lock::new(RetryBudget::new()),
        }
    }

    /// From now on no request is repeated.
    pub(super) fn abandon(&self) {
        self.abandoned.happen();
    }

    pub(super) fn begin(&self) -> Attempts {
        let now = self.clock.now();
        Attempts {
            started: now,
            last_progress: now,
            count: 0,
            fruitless: 0,
        }
    }

    /// Notes that an attempt brought something.
    pub(super) fn note_progress(&self, attempts: &mut Attempts) {
        attempts.fruitless = 0;
        attempts.last_progress = self.clock.now();
    }

    /// Notes that a request succeeded.
    pub(super) fn note_success(&self) {
        self.budget.lock().earn();
    }

    /// Waits until it is time to repeat a request that failed because of `text`, no sooner than the
    /// server `asked` for.
    ///
    /// # Errors
    /// The failure, if the request is not repeated; also when the wait was cancelled.
    pub(super) fn wait(
        &self,
        attempts: &mut Attempts,
        text: &str,
        asked: Option<Duration>,
    ) -> Result<(), FetchFailure> {
        attempts.fruitless += 1;
        let random = spread(self.clock.now_ns());
        let delay = delay_before(attempts.fruitless.saturating_sub(1), asked, random);
        let has_time = delay < self.time_left(attempts);
        if attempts.fruitless >= self.attempts_max || !has_time || !self.budget.lock().spend() {
            let text = match asked {
                Some(asked) if !has_time => {
                    let seconds = asked.as_secs();
                    format!("{text}; the server asks to be left alone for {seconds} s")
                }
                _ => text.to_owned(),
            };
            return Err(self.failure(attempts, io::ErrorKind::TimedOut, &text));
        }
        let ends = [self.cancellation.event(), &self.abandoned];
        if Event::wait_for_any(&ends, delay) {
            let text = format!("{text}; cancelled before the next attempt");
            return Err(self.failure(attempts, io::ErrorKind::Other, &text));
        }
        Ok(())
    }

    fn time_left(&self, attempts: &Attempts) -> Duration {
        let passed = self.clock.now().saturating_sub(attempts.last_progress);
        self.deadline.saturating_sub(passed)
    }

    /// A failure that is not repeated.
    pub(super) fn failure(
        &self,
        attempts: &Attempts,
        kind: io::ErrorKind,
        text: &str,
    ) -> FetchFailure {
        let passed = self.clock.now().saturating_sub(attempts.started);
        let seconds = passed.as_secs_f64();
        let text = match attempts.count {
            0 | 1 => text.to_owned(),
            count => format!("{text} (given up after {count} attempts in {seconds:.1} s)"),
        };
        FetchFailure { kind, text }
    }
}
