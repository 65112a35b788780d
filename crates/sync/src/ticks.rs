//! A per-thread clock based on the processor's time stamp counter: 10 ns per reading instead of 20
//! to 30 for the system's clock.
//!
//! Reading the clock after every job takes a large part of a short job. [`TickClock`] reads the
//! counter and adds the time since its last reading of the system's clock, which it repeats every
//! millisecond. Its error is therefore at most the difference of the two rates within one
//! millisecond. It needs no calibration: it uses the rate of the last such interval, and the
//! system's clock until a rate is known.
//!
//! It is used only where Linux bases its own time on this counter, because Linux has then found it
//! to be constant and equal on all processors. Elsewhere every reading comes from the system's
//! clock. (The crate `quanta` measures the rate at start, for up to 200 ms.)
//!
//! `unsafe`: `rdtsc` has no operands and needs no feature that a 64-bit processor may lack.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fs;
use std::sync::OnceLock;

use crate::clock::RealClock;

/// How long a reading of the system's clock remains valid.
const WINDOW_NS: u64 = 1_000_000;
/// The minimum distance of two readings of the system's clock for computing the rate.
const DISTANCE_NS_MIN: u64 = WINDOW_NS / 5;
const DISTANCE_NS_MAX: u64 = 1_000_000_000;
/// A reading of the system's clock that took more ticks was interrupted, so it is not an anchor.
/// (It usually takes about 100. An error of this size makes the rate wrong by a few thousandths and
/// a reading by a few µs.)
const READING_TICKS_MAX: u64 = 1000;
const RATE_BITS: u32 = 32;

/// The counter and the system's clock at a common moment, and the rate between them. For one
/// thread.
#[derive(Debug, Default)]
pub struct TickClock {
    anchor_ticks: Cell<u64>,
    anchor_ns: Cell<u64>,
    /// Nanoseconds per tick, times `2^RATE_BITS`.
    rate: Cell<u64>,
    /// The number of ticks after the anchor for which the rate is used; 0 while there is no rate.
    window_ticks: Cell<u64>,
    last_ns: Cell<u64>,
}

/// The clock of the process, for [`thread_now_ns`].
static PROCESS_CLOCK: OnceLock<RealClock> = OnceLock::new();

thread_local! {
    static THREAD_CLOCK: TickClock = TickClock::default();
}

/// The time in nanoseconds since the process's first call, by a clock of the calling thread: faster
/// than the system's, and as exact as [`TickClock`].
pub fn thread_now_ns() -> u64 {
    let clock = PROCESS_CLOCK.get_or_init(RealClock::new);
    let now_ns = THREAD_CLOCK.try_with(|thread| thread.now_ns(|| clock.now_ns()));
    // The thread is about to end.
    now_ns.unwrap_or_else(|_| clock.now_ns())
}

impl TickClock {
    /// The last reading.
    pub fn last_ns(&self) -> u64 {
        self.last_ns.get()
    }

    /// Returns the time of the clock that `system_ns` reads. Never goes back.
    #[inline]
    pub fn now_ns(&self, system_ns: impl Fn() -> u64) -> u64 {
        let now_ns = self.at(ticks(), || (system_ns(), ticks()), is_trusted);
        let now_ns = now_ns.max(self.last_ns.get());
        self.last_ns.set(now_ns);
        now_ns
    }

    #[inline]
    fn at(
        &self,
        ticks: u64,
        read: impl FnOnce() -> (u64, u64),
        is_trusted: impl FnOnce() -> bool,
    ) -> u64 {
        // A counter that went back gives the largest distance.
        let since_ticks = ticks.wrapping_sub(self.anchor_ticks.get());
        if since_ticks < self.window_ticks.get() {
            return self.anchor_ns.get() + ((since_ticks * self.rate.get()) >> RATE_BITS);
        }
        let (now_ns, after) = read();
        if after.wrapping_sub(ticks) < READING_TICKS_MAX && is_trusted() {
            self.anchor(after, now_ns);
        }
        now_ns
    }

    fn anchor(&self, ticks: u64, now_ns: u64) {
        let distance_ticks = ticks.wrapping_sub(self.anchor_ticks.get());
        let distance_ns = now_ns.saturating_sub(self.anchor_ns.get());
        if self.anchor_ns.get() > 0 && distance_ns < DISTANCE_NS_MIN {
            return;
        }
        // A second is less than 2^30 ns. A counter of less than one tick per 4 ns or more than 16
        // per ns is not credible. Within these limits the products do not overflow.
        let has_rate = distance_ns <= DISTANCE_NS_MAX
            && (distance_ns / 4..distance_ns * 16).contains(&distance_ticks);
        if has_rate {
            self.rate.set((distance_ns << RATE_BITS) / distance_ticks);
            self.window_ticks
                .set(WINDOW_NS * distance_ticks / distance_ns);
        }
        self.anchor_ticks.set(ticks);
        self.anchor_ns.set(now_ns);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: reads a register; no memory is accessed.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// Whether Linux bases its time on the counter.
fn is_trusted() -> bool {
    static IS_TRUSTED: OnceLock<bool> = OnceLock::new();
    *IS_TRUSTED.get_or_init(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        cfg!(target_arch = "x86_64")
            && fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::RealClock;

    /// A machine of three ticks per nanosecond. Its system clock takes 20 ns to read, and started
    /// long after the machine.
    struct Machine {
        now_ns: Cell<u64>,
        readings: Cell<u32>,
    }

    impl Machine {
        const START_NS: u64 = 5_000_000_000;

        fn new() -> Machine {
            Machine {
                now_ns: Cell::new(Machine::START_NS + 1000),
                readings: Cell::new(0),
            }
        }

        fn ticks(&self) -> u64 {
            self.now_ns.get() * 3
        }

        fn read(&self, clock: &TickClock, interrupted_ns: u64) -> u64 {
            clock.at(
                self.ticks(),
                || {
                    self.readings.set(self.readings.get() + 1);
                    self.now_ns.set(self.now_ns.get() + 20);
                    let read_ns = self.now_ns.get() - Machine::START_NS;
                    self.now_ns.set(self.now_ns.get() + interrupted_ns);
                    (read_ns, self.ticks())
                },
                || true,
            )
        }

        fn error_ns(&self, clock: &TickClock) -> u64 {
            let read_ns = self.read(clock, 0);
            read_ns.abs_diff(self.now_ns.get() - Machine::START_NS)
        }
    }

    #[test]
    fn the_system_clock_is_read_once_per_window_and_readings_are_exact() {
        let (machine, clock) = (Machine::new(), TickClock::default());
        for step in 0..100_000 {
            assert!(machine.error_ns(&clock) <= 1, "step {step}");
            machine.now_ns.set(machine.now_ns.get() + 100);
        }
        // 10 ms. In the first fifth of a window every reading comes from the system's clock.
        let readings = machine.readings.get() as u64;
        assert!(
            (10..12 + DISTANCE_NS_MIN / 100).contains(&readings),
            "{readings} readings"
        );
    }

    #[test]
    fn readings_are_exact_after_pauses_of_any_length() {
        let (machine, clock) = (Machine::new(), TickClock::default());
        for pause_ns in [1, 300_000, 999_999, 1_000_001, 10_000_000_000, 1 << 50] {
            for _ in 0..10_000 {
                assert!(machine.error_ns(&clock) <= 1, "after {pause_ns}");
                machine.now_ns.set(machine.now_ns.get() + 50);
            }
            machine.now_ns.set(machine.now_ns.get() + pause_ns);
        }
    }

    #[test]
    fn an_untrusted_counter_is_not_used() {
        let clock = TickClock::default();
        for ns in (0..10_000_000).step_by(1000) {
            assert_eq!(clock.at(ns, || (3 * ns, ns), || false), 3 * ns);
        }
    }

    #[test]
    fn an_interrupted_reading_is_not_an_anchor() {
        let (machine, clock) = (Machine::new(), TickClock::default());
        for _ in 0..10 {
            // Each reading is interrupted for 4 ms, so none becomes an anchor.
            machine.read(&clock, 4_000_000);
            assert_eq!(clock.window_ticks.get(), 0);
        }
    }

    #[test]
    fn a_change_of_rate_is_detected() {
        let (machine, clock) = (Machine::new(), TickClock::default());
        let read = |machine: &Machine, ticks: u64| {
            clock.at(ticks, || (machine.now_ns.get(), ticks), || true)
        };
        let mut ticks = 7;
        for step in 0..200_000_u64 {
            // A migration to another host: from three ticks per nanosecond to two.
            let rate = if step < 100_000 { 3 } else { 2 };
            ticks += 100 * rate;
            machine.now_ns.set(machine.now_ns.get() + 100);
            let error_ns = read(&machine, ticks).abs_diff(machine.now_ns.get());
            // Wrong until the window ends, by at most its length.
            let is_exact = !(100_000..100_000 + 2 * WINDOW_NS / 100).contains(&step);
            assert!(
                error_ns <= if is_exact { 2 } else { WINDOW_NS },
                "{step}: {error_ns}"
            );
        }
    }

    #[test]
    fn follows_the_real_clock_and_never_goes_back() {
        let (real, clock) = (RealClock::new(), TickClock::default());
        let mut last_ns = 0;
        let mut between = 0;
        for _ in 0..200_000 {
            let before_ns = real.now_ns();
            let now_ns = clock.now_ns(|| real.now_ns());
            let after_ns = real.now_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
            // The rates of consecutive windows differ a little.
            between +=
                u32::from((before_ns.saturating_sub(5000)..after_ns + 5000).contains(&now_ns));
        }
        assert!(between > 150_000, "{between} of 200,000 readings are near");
    }
}
