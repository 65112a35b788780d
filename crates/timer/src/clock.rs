//! Time as a dependency, so that tests can move it by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
#[cfg(not(target_os = "linux"))]
use std::time::Instant;

/// Monotone time since the clock's own start.
///
/// Time is for rates, progress and deadlines; it never reaches the bytes of an archive.
pub trait Clock: Send + Sync {
    /// Time since this clock was made. Never goes back.
    fn now(&self) -> Duration;
}

/// The machine's monotone clock. The only reader of real time in the workspace, but for the counter that workers follow it by (`ticks.rs`).
#[derive(Debug, Clone)]
pub struct RealClock {
    #[cfg(not(target_os = "linux"))]
    start: Instant,
    #[cfg(target_os = "linux")]
    start_ns: u64,
}

impl RealClock {
    /// A clock that reads zero now.
    pub fn new() -> Self {
        RealClock {
            #[cfg(not(target_os = "linux"))]
            start: Instant::now(),
            #[cfg(target_os = "linux")]
            start_ns: monotonic_ns(),
        }
    }

    /// Time since this clock was made, in nanoseconds. For those who read it after every job: an `Instant` is put together, checked and
    /// taken apart again each time, a fifth of what a reading costs.
    #[cfg(target_os = "linux")]
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Time since this clock was made, in nanoseconds.
    #[cfg(not(target_os = "linux"))]
    pub fn now_ns(&self) -> u64 {
        // 584 years fit.
        self.start.elapsed().as_nanos() as u64
    }
}

/// What `Instant` reads.
#[cfg(target_os = "linux")]
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Time since the machine was started: neither is negative.
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns())
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
