//! Clocks as a dependency, so that tests control time.

#[cfg(not(target_os = "linux"))]
use std::time::Instant;
use std::time::{Duration, SystemTime};

/// Monotonic time since the clock's own start.
///
/// Time is for rates, progress and deadlines. It never affects the bytes of an archive.
pub trait Clock: Send + Sync {
    /// The time since the clock was created. Never goes back.
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock. Besides the counter in [`ticks`](crate::ticks) it is the engine's
/// only source of real time.
#[derive(Debug, Clone)]
pub struct RealClock {
    #[cfg(not(target_os = "linux"))]
    start: Instant,
    #[cfg(target_os = "linux")]
    start_ns: u64,
}

impl RealClock {
    /// Returns a clock that starts at zero now.
    pub fn new() -> Self {
        RealClock {
            #[cfg(not(target_os = "linux"))]
            start: Instant::now(),
            #[cfg(target_os = "linux")]
            start_ns: monotonic_ns(),
        }
    }

    /// The time since the clock was created, in nanoseconds. It avoids `Instant`, whose
    /// construction and checks take a fifth of a reading, which matters when the clock is read
    /// after every job.
    #[cfg(target_os = "linux")]
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }

    /// The time since the clock was created, in nanoseconds.
    #[cfg(not(target_os = "linux"))]
    pub fn now_ns(&self) -> u64 {
        // 584 years fit into 64 bits.
        self.start.elapsed().as_nanos() as u64
    }
}

/// The clock that `Instant` reads, in nanoseconds; the kernel's own records use the same one.
#[cfg(target_os = "linux")]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Time since the machine was started: neither part is negative.
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// The seconds since 1970-01-01 00:00:00 UTC by the machine's clock, which may be set. Only for
/// people, other machines and file systems, which have times of the same clock.
pub fn unix_seconds() -> i64 {
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        // The year 292 billion.
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_secs()).map_or(i64::MIN, |s| -s),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
