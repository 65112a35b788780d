//! The environment of experiments.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain_sync::clock::{Clock, RealClock};

use crate::error::{Error, Result};

/// The default memory of experiments: the largest table of the cache ladder, and room for the order
/// of its walk.
const MEMORY_BYTES_DEFAULT: u64 = 384 << 20;

/// The environment of experiments.
#[derive(Clone)]
pub struct Context {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Set when the run has to end.
    pub cancelled: Arc<AtomicBool>,
    /// Whether to measure only briefly, less exactly.
    pub is_quick: bool,
    /// The maximum memory of an experiment.
    pub memory_bytes: u64,
    /// Where files are created.
    pub directory: PathBuf,
    /// The number of processors that this process may use.
    pub processors: usize,
    /// The seed of random numbers.
    pub seed: u64,
}

impl Context {
    /// The defaults, with files in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Context {
        Context {
            clock: Arc::new(RealClock::new()),
            cancelled: Arc::default(),
            is_quick: false,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            directory: directory.into(),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            seed: 0x5eed,
        }
    }

    /// The time of the clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Ends the experiment if the run was cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }

    /// `thorough`, or `quick` in a quick run.
    pub(crate) fn time(&self, quick_ms: u64, thorough_ms: u64) -> Duration {
        Duration::from_millis(if self.is_quick { quick_ms } else { thorough_ms })
    }

    /// Calls `round` until `time` is over, at least once. Returns the number of calls and the
    /// nanoseconds that they took.
    pub(crate) fn repeat(
        &self,
        time: Duration,
        mut round: impl FnMut() -> Result<()>,
    ) -> Result<(u64, u64)> {
        let start_ns = self.now_ns();
        let mut rounds = 0;
        loop {
            self.check()?;
            round()?;
            rounds += 1;
            let taken_ns = self.now_ns() - start_ns;
            if u128::from(taken_ns) >= time.as_nanos() {
                return Ok((rounds, taken_ns.max(1)));
            }
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Context")
            .field("is_quick", &self.is_quick)
            .field("memory_bytes", &self.memory_bytes)
            .field("directory", &self.directory)
            .field("processors", &self.processors)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_counted_and_end_when_cancelled() {
        let context = Context::new("/");
        let mut calls = 0;
        let (rounds, taken_ns) = context
            .repeat(Duration::ZERO, || {
                calls += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!((rounds, calls), (1, 1));
        assert!(taken_ns > 0);
        context.cancelled.store(true, Ordering::Relaxed);
        let ended = context.repeat(Duration::from_secs(60), || Ok(()));
        assert!(matches!(ended, Err(Error::Cancelled)));
    }
}
