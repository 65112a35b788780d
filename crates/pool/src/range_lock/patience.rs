//! How long a request waits.

use std::fmt;
use std::time::Duration;

use refrain_sync::clock::RealClock;

use crate::cancel::Cancellation;

/// How often a waiting thread checks for cancellation: setting the flag wakes nobody.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(20);

/// How long a thread waits: forever, until a time, until it is cancelled.
#[derive(Debug, Clone, Default)]
pub struct Patience<'a> {
    deadline: Option<(RealClock, Duration)>,
    cancellation: Option<&'a Cancellation>,
}

impl<'a> Patience<'a> {
    /// Patience that never ends.
    pub fn endless() -> Self {
        Patience::default()
    }

    /// Patience that lasts for `time`.
    pub fn lasting(time: Duration) -> Self {
        Patience {
            deadline: Some((RealClock::new(), time)),
            cancellation: None,
        }
    }

    /// The same patience, which also ends when `cancellation` is set.
    pub fn unless(mut self, cancellation: &'a Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// How long to wait before the next call; `None` to wait only for the lock.
    pub(super) fn left(&self) -> Result<Option<Duration>, GaveUp> {
        if (self.cancellation).is_some_and(Cancellation::is_cancelled) {
            return Err(GaveUp::Cancelled);
        }
        let until_look = self.cancellation.map(|_| CANCELLATION_INTERVAL);
        let Some((clock, time)) = &self.deadline else {
            return Ok(until_look);
        };
        let passed = Duration::from_nanos(clock.now_ns());
        match time.checked_sub(passed).filter(|left| !left.is_zero()) {
            None => Err(GaveUp::DeadlinePassed { after: *time }),
            Some(left) => Ok(Some(until_look.map_or(left, |look| look.min(left)))),
        }
    }
}

/// Why a request was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GaveUp {
    /// Its time had passed.
    DeadlinePassed {
        /// How long the request waited.
        after: Duration,
    },
    /// It was cancelled.
    Cancelled,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GaveUp::DeadlinePassed { after } => {
                write!(formatter, "the range was still in use after {after:?}")
            }
            GaveUp::Cancelled => write!(formatter, "cancelled while waiting for a range"),
        }
    }
}

impl std::error::Error for GaveUp {}
