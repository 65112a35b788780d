//! The way to the server, which all ranges in flight share: how fast it is, how many ranges it
//! takes at once, and which rate is too slow.

use std::io::{self, Read};
use std::time::Duration;

use refrain_sync::clock::{Clock, RealClock};
use refrain_sync::{Condvar, Mutex, lock, wait};

use super::options::RemoteOptions;

/// On a slow link each range in flight has this much of its rate, in bytes per second; one more
/// range finds out whether the link has more.
const RATE_OF_RANGE: u64 = 32 << 10;

/// From this rate on, in bytes per second, the number of ranges in flight has no limit here.
const RATE_FAST: u64 = 8 * RATE_OF_RANGE;

/// The least number of bytes whose arrival tells a rate.
const MEASURED_BYTES_MIN: u64 = 16 << 10;

#[derive(Debug)]
pub(super) struct Link {
    clock: RealClock,
    /// The rate that all ranges in flight must have together, in bytes per second.
    rate_min: u64,
    /// For how long a range may be slower than its share of that.
    patience: Duration,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    /// Bytes per second of one range, with the time to its first byte.
    range_rate: Option<u64>,
    /// Bytes per second of all ranges in flight.
    rate: Option<u64>,
}

/// The right to have a range in flight.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    link: &'a Link,
    began: Duration,
}

impl Link {
    pub(super) fn new(options: &RemoteOptions) -> Link {
        Link {
            clock: RealClock::new(),
            rate_min: options.rate_min,
            patience: options.stall,
            state: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// Waits while the link has as many ranges in flight as its rate allows.
    pub(super) fn enter(&self) -> Slot<'_> {
        let mut state = lock(&self.state);
        while state.in_flight >= ranges_max(state.rate) {
            state = wait(&self.left, state);
        }
        state.in_flight += 1;
        Slot {
            link: self,
            began: self.clock.now(),
        }
    }

    /// How many ranges are in flight at once; at least 1.
    pub(super) fn ranges_max(&self) -> usize {
        ranges_max(lock(&self.state).rate)
    }

    /// Bytes per second of recent ranges; `None` before the first.
    pub(super) fn range_rate(&self) -> Option<u64> {
        lock(&self.state).range_rate
    }
}

fn ranges_max(rate: Option<u64>) -> usize {
    match rate {
        Some(rate) if rate < RATE_FAST => 1 + (rate / RATE_OF_RANGE) as usize,
        _ => usize::MAX,
    }
}

impl Slot<'_> {
    /// The bytes that must arrive within `time`.
    fn bytes_min(&self, time: Duration) -> u64 {
        let in_flight = lock(&self.link.state).in_flight.max(1) as u64;
        (self.link.rate_min as f64 * time.as_secs_f64()) as u64 / in_flight
    }

    /// Whether `count` bytes since the beginning are no less than the minimal rate gives.
    pub(super) fn is_progress(&self, count: u64) -> bool {
        let passed = self.link.clock.now().saturating_sub(self.began);
        count > 0 && count >= self.bytes_min(passed)
    }

    /// Notes that a range of `count` bytes is complete.
    pub(super) fn note_complete(&self, count: u64) {
        let took = self.link.clock.now().saturating_sub(self.began);
        // Short ranges measure only latency.
        if count >= 64 << 10 {
            let rate = &mut lock(&self.link.state).range_rate;
            *rate = averaged(*rate, count, took);
        }
    }

    /// Reads a body, and fails when it is slower than the minimal rate for a while.
    pub(super) fn paced<R: Read>(&self, body: R) -> PacedReader<'_, R> {
        PacedReader {
            body,
            slot: self,
            first: None,
            after_first_bytes: 0,
            window_began: self.link.clock.now(),
            window_bytes: 0,
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        lock(&self.link.state).in_flight -= 1;
        // The limit may have changed by more than one.
        self.link.left.notify_all();
    }
}

fn averaged(before: Option<u64>, count: u64, took: Duration) -> Option<u64> {
    let now = (count as f64 / took.as_secs_f64().max(1e-6)) as u64;
    let rate = before.map_or(now, |before| before / 4 * 3 + now / 4);
    Some(rate.max(1))
}

pub(super) struct PacedReader<'a, R> {
    body: R,
    slot: &'a Slot<'a>,
    /// When the first bytes arrived.
    first: Option<Duration>,
    /// The bytes after those.
    after_first_bytes: u64,
    window_began: Duration,
    window_bytes: u64,
}

impl<R: Read> Read for PacedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(buffer)?;
        let link = self.slot.link;
        let now = link.clock.now();
        match self.first {
            None => self.first = Some(now),
            Some(_) => self.after_first_bytes += count as u64,
        }
        self.window_bytes += count as u64;
        let passed = now.saturating_sub(self.window_began);
        if count > 0 && passed >= link.patience {
            let least = self.slot.bytes_min(passed);
            if self.window_bytes < least {
                let (bytes, seconds) = (self.window_bytes, passed.as_secs_f64());
                let text = format!(
                    "the server is too slow: {bytes} bytes in {seconds:.1} s, less than {least}"
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.window_began = now;
            self.window_bytes = 0;
        }
        Ok(count)
    }
}

impl<R> Drop for PacedReader<'_, R> {
    fn drop(&mut self) {
        let Some(first) = self
            .first
            .filter(|_| self.after_first_bytes >= MEASURED_BYTES_MIN)
        else {
            return;
        };
        let link = self.slot.link;
        let took = link.clock.now().saturating_sub(first);
        let state = &mut *lock(&link.state);
        let all_bytes = self.after_first_bytes * state.in_flight as u64;
        state.rate = averaged(state.rate, all_bytes, took);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    fn link_with(rate: u64) -> Link {
        let link = Link::new(&RemoteOptions::default());
        lock(&link.state).rate = Some(rate);
        link
    }

    #[test]
    fn slow_links_have_few_ranges_in_flight() {
        for (rate, most) in [
            (1, 1),
            (40_000, 2),
            (100_000, 4),
            (RATE_FAST - 1, 8),
            (RATE_FAST, usize::MAX),
        ] {
            assert_eq!(link_with(rate).ranges_max(), most, "{rate}");
        }
        assert_eq!(
            Link::new(&RemoteOptions::default()).ranges_max(),
            usize::MAX
        );
    }

    #[test]
    fn ranges_wait_for_each_other_on_a_slow_link() {
        let link = link_with(40_000);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _slot = link.enter();
                        most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
    }

    #[test]
    fn ranges_in_flight_share_the_minimal_rate() {
        let link = link_with(RATE_FAST);
        let second = Duration::from_secs(1);
        let slot = link.enter();
        assert_eq!(slot.bytes_min(second), link.rate_min);
        let others = [link.enter(), link.enter(), link.enter()];
        assert_eq!(slot.bytes_min(second), link.rate_min / 4);
        drop(others);
        assert_eq!(slot.bytes_min(2 * second), 2 * link.rate_min);
        assert!(!slot.is_progress(0));
        assert!(slot.is_progress(1 << 40));
    }

    #[test]
    fn the_rate_is_that_of_all_ranges_in_flight() {
        let link = Link::new(&RemoteOptions::default());
        let (slot, _other) = (link.enter(), link.enter());
        let body = [0; 100 << 10];
        let mut reader = slot.paced(&body[..]);
        let mut piece = [0; 50 << 10];
        while reader.read(&mut piece).unwrap() > 0 {}
        assert_eq!(reader.after_first_bytes, 50 << 10);
        drop(reader);
        assert!(lock(&link.state).rate > Some(RATE_FAST));
    }
}
