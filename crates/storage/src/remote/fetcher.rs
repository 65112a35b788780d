//! Fetches one range of an object, by as many requests as it takes.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use refrain_pool::{Cancellation, Event, Lock};
use refrain_sync::clock::{Clock, RealClock};

use super::identity::Identity;
use super::link::Link;
use super::options::RemoteOptions;
use super::origin::OriginServer;
use super::request_failure::{Remedy, RequestFailure};
use super::retry::{RetryBudget, delay_before, spread};

/// What a server was asked for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteStatistics {
    /// Requests, including repetitions. A redirected request counts once.
    pub requests: u64,
    /// Requests that were repetitions.
    pub repetitions: u64,
    /// Bytes of bodies that were received.
    pub received_bytes: u64,
}

/// Fetches ranges of one object, from several threads at once.
pub(super) struct Fetcher {
    origin: OriginServer,
    deadline: Duration,
    attempts_max: u32,
    cancellation: Cancellation,
    /// Happens when nobody reads the object any more.
    abandoned: Event,
    clock: RealClock,
    budget: Lock<RetryBudget>,
    identity: OnceLock<Identity>,
    /// How the object that took the place of this one differs; then nothing more is read.
    replaced: OnceLock<String>,
    requests: AtomicU64,
    repetitions: AtomicU64,
    received_bytes: AtomicU64,
    link: Link,
}

/// A failed fetch, which several readers may report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FetchFailure {
    pub kind: io::ErrorKind,
    pub text: String,
}

struct Attempts {
    started: Duration,
    /// When the last fruitful attempt ended, or the first began.
    last_progress: Duration,
    count: u32,
    /// Consecutive attempts without progress.
    fruitless: u32,
}

impl Fetcher {
    pub(super) fn new(origin: OriginServer, options: &RemoteOptions) -> Fetcher {
        Fetcher {
            origin,
            deadline: options.deadline,
            attempts_max: options.attempts_max.max(1),
            cancellation: options.cancellation.clone(),
            abandoned: Event::new(),
            clock: RealClock::new(),
            budget: Lock::new(RetryBudget::new()),
            identity: OnceLock::new(),
            replaced: OnceLock::new(),
            requests: AtomicU64::new(0),
            repetitions: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            link: Link::new(options),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.origin.name()
    }

    /// From now on no request is repeated.
    pub(super) fn abandon(&self) {
        self.abandoned.happen();
    }

    /// The length of the object, known after the first response.
    pub(super) fn length_bytes(&self) -> Option<u64> {
        self.identity.get().map(|identity| identity.length_bytes)
    }

    pub(super) fn statistics(&self) -> RemoteStatistics {
        RemoteStatistics {
            requests: self.requests.load(Relaxed),
            repetitions: self.repetitions.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Fails if the object was replaced.
    pub(super) fn check_not_replaced(&self) -> Result<(), FetchFailure> {
        match self.replaced.get() {
            None => Ok(()),
            Some(text) => Err(FetchFailure {
                kind: io::ErrorKind::StaleNetworkFileHandle,
                text: text.clone(),
            }),
        }
    }

    /// Fetches `range`, or the part of it that the object has.
    pub(super) fn fetch(&self, range: Range<u64>) -> Result<Vec<u8>, FetchFailure> {
        let now = self.clock.now();
        let mut attempts = Attempts {
            started: now,
            last_progress: now,
            count: 0,
            fruitless: 0,
        };
        let mut bytes = Vec::new();
        loop {
            self.check_not_replaced()?;
            let end = self
                .length_bytes()
                .map_or(range.end, |length| length.min(range.end));
            let start = range.start + bytes.len() as u64;
            if start >= end && (attempts.count > 0 || self.length_bytes().is_some()) {
                return Ok(bytes);
            }
            let before = bytes.len();
            let slot = self.link.enter();
            attempts.count += 1;
            self.requests.fetch_add(1, Relaxed);
            let received = self
                .origin
                .receive(&(start..end), &self.identity, &slot, &mut bytes);
            let count = (bytes.len() - before) as u64;
            self.received_bytes.fetch_add(count, Relaxed);
            if received.is_ok() || slot.is_progress(count) {
                attempts.fruitless = 0;
                attempts.last_progress = self.clock.now();
            }
            if received.is_ok() {
                slot.note_complete(count);
            }
            drop(slot);
            match received {
                Ok(_) => self.budget.lock().earn(),
                Err(failure) => {
                    attempts.fruitless += 1;
                    self.prepare_repetition(&attempts, failure)?;
                }
            }
        }
    }

    /// Waits until it is time to repeat a request.
    ///
    /// # Errors
    /// The failure, if the request is not repeated; also when the wait was cancelled.
    fn prepare_repetition(
        &self,
        attempts: &Attempts,
        failure: RequestFailure,
    ) -> Result<(), FetchFailure> {
        let RequestFailure { remedy, text } = failure;
        let asked = match remedy {
            Remedy::Repeat(asked) => asked,
            Remedy::None(kind) => return Err(attempts.failure(self, kind, &text)),
            Remedy::Replaced => {
                self.replaced.get_or_init(|| text);
                return self.check_not_replaced();
            }
        };
        let random = spread(self.clock.now_ns());
        let delay = delay_before(attempts.fruitless.saturating_sub(1), asked, random);
        let has_time = delay < attempts.time_left(self);
        if attempts.fruitless >= self.attempts_max || !has_time || !self.budget.lock().spend() {
            let text = match asked {
                Some(asked) if !has_time => {
                    let seconds = asked.as_secs();
                    format!("{text}; the server asks to be left alone for {seconds} s")
                }
                _ => text,
            };
            return Err(attempts.failure(self, io::ErrorKind::TimedOut, &text));
        }
        let ends = [self.cancellation.event(), &self.abandoned];
        if Event::wait_for_any(&ends, delay) {
            let text = format!("{text}; cancelled before the next attempt");
            return Err(attempts.failure(self, io::ErrorKind::Other, &text));
        }
        self.repetitions.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl Attempts {
    fn time_left(&self, fetcher: &Fetcher) -> Duration {
        let passed = fetcher.clock.now().saturating_sub(self.last_progress);
        fetcher.deadline.saturating_sub(passed)
    }

    fn failure(&self, fetcher: &Fetcher, kind: io::ErrorKind, text: &str) -> FetchFailure {
        let seconds = fetcher
            .clock
            .now()
            .saturating_sub(self.started)
            .as_secs_f64();
        let text = match self.count {
            0 | 1 => text.to_owned(),
            count => format!("{text} (given up after {count} attempts in {seconds:.1} s)"),
        };
        FetchFailure { kind, text }
    }
}
