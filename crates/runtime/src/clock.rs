//! Time as a dependency, so that tests can move it by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Monotone time since the clock's own start.
///
/// Time is for rates, progress and deadlines; it never reaches the bytes of an archive.
pub trait Clock: Send + Sync {
    /// Time since this clock was made. Never goes back.
    fn now(&self) -> Duration;
}

/// The machine's monotone clock. The only reader of real time in the workspace.
#[derive(Debug, Clone)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock that reads zero now.
    pub fn new() -> Self {
        RealClock {
            start: Instant::now(),
        }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until it is told to move.
#[derive(Debug, Default)]
pub struct MockClock {
    nanoseconds: AtomicU64,
}

impl MockClock {
    /// A clock that reads zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves time forward; stops at the largest time it can hold (584 years).
    pub fn advance(&self, step: Duration) {
        let step_ns = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX);
        let advance = |now_ns: u64| Some(now_ns.saturating_add(step_ns));
        // The closure never refuses, so there is no error to look at.
        let _ = self
            .nanoseconds
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, advance);
    }
}

impl Clock for MockClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mock_time_moves_only_by_hand_and_saturates() {
        let clock = MockClock::new();
        assert_eq!(clock.now(), Duration::ZERO);
        clock.advance(Duration::from_millis(3));
        clock.advance(Duration::from_nanos(7));
        assert_eq!(clock.now(), Duration::from_nanos(3_000_007));
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn real_time_never_goes_back() {
        let clock = RealClock::new();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
