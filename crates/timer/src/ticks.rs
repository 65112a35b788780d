//! A thread's own idea of the time, from the processor's time stamp counter: 10 ns a reading where the system's clock takes 20 to 30.
//!
//! Who reads the clock after every job spends a good part of a short job on it. [`TickClock`] reads the counter, and adds what passed since it
//! last looked at the system's clock, which it does each millisecond; so it cannot drift further than the two rates differ within one.
//! There is nothing to calibrate beforehand: the rate is that of the last such distance, and until it is known every reading is the system's.
//!
//! Only where Linux keeps its own time by this counter: then it has found it to be constant, and the same on all processors. Others, and
//! other machines, get the system's clock. (The crate `quanta` measures the rate when it starts, for up to 200 ms.)
//!
//! `unsafe`: `rdtsc` has no operands and needs no feature that a 64-bit processor may lack.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fs;
use std::sync::OnceLock;

/// How long a reading of the system's clock is good for.
const WINDOW_NS: u64 = 1_000_000;
/// Between two readings of it that are so far apart, the rate of the counter shows.
const DISTANCE_NS_MIN: u64 = WINDOW_NS / 5;
const DISTANCE_NS_MAX: u64 = 1_000_000_000;
/// A reading of the system's clock that took longer was interrupted, and tells when, but not at which tick. (It takes some 100; what is
/// wrong by this much makes the rate wrong by a few thousandths, and a reading by a few µs.)
const READING_TICKS_MAX: u64 = 1000;
/// Binary digits behind the point of a rate.
const RATE_BITS: u32 = 32;

/// The counter and the system's clock, side by side. For one thread.
#[derive(Debug, Default)]
pub struct TickClock {
    anchor_ticks: Cell<u64>,
    anchor_ns: Cell<u64>,
    /// Nanoseconds a tick, times `2^RATE_BITS`.
    rate: Cell<u64>,
    /// So many ticks from the anchor on are reckoned with the rate; none while there is no rate.
    window_ticks: Cell<u64>,
    last_ns: Cell<u64>,
}

impl TickClock {
    /// What it was asked for last.
    pub fn last_ns(&self) -> u64 {
        self.last_ns.get()
    }

    /// The time by the clock that `system_ns` reads. Never goes back.
    #[inline]
    pub fn now_ns(&self, system_ns: impl Fn() -> u64) -> u64 {
        let now_ns = self.at(ticks(), || (system_ns(), ticks()), is_trusted);
        let now_ns = now_ns.max(self.last_ns.get());
        self.last_ns.set(now_ns);
        now_ns
    }

    /// The time at `ticks`. `look` reads the system's clock and then the counter.
    #[inline]
    fn at(
        &self,
        ticks: u64,
        look: impl FnOnce() -> (u64, u64),
        is_trusted: impl FnOnce() -> bool,
    ) -> u64 {
        // A counter that went back is as far away as can be.
        let since_ticks = ticks.wrapping_sub(self.anchor_ticks.get());
        if since_ticks < self.window_ticks.get() {
            return self.anchor_ns.get() + ((since_ticks * self.rate.get()) >> RATE_BITS);
        }
        let (now_ns, after) = look();
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
        // A second is 2^30 ns. Counters of less than a tick for 4 ns, or more than 16 for one, are none; those products fit as well.
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

/// The time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: reads a register; nothing is pointed at.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// Whether Linux trusts that counter.
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

    /// A machine of three ticks a nanosecond, whose system clock takes 20 ns to read and was made long after the machine.
    struct Machine {
        now_ns: Cell<u64>,
        looks: Cell<u32>,
    }

    impl Machine {
        const MADE_NS: u64 = 5_000_000_000;

        fn new() -> Machine {
            Machine {
                now_ns: Cell::new(Machine::MADE_NS + 1000),
                looks: Cell::new(0),
            }
        }

        fn ticks(&self) -> u64 {
            self.now_ns.get() * 3
        }

        fn read(&self, clock: &TickClock, interrupted_ns: u64) -> u64 {
            clock.at(
                self.ticks(),
                || {
                    self.looks.set(self.looks.get() + 1);
                    self.now_ns.set(self.now_ns.get() + 20);
                    let read_ns = self.now_ns.get() - Machine::MADE_NS;
                    self.now_ns.set(self.now_ns.get() + interrupted_ns);
                    (read_ns, self.ticks())
                },
                || true,
            )
        }

        /// How far the reading is from the truth.
        fn error_ns(&self, clock: &TickClock) -> u64 {
            let read_ns = self.read(clock, 0);
            read_ns.abs_diff(self.now_ns.get() - Machine::MADE_NS)
        }
    }

    #[test]
    fn it_looks_once_a_window_and_is_right() {
        let (machine, clock) = (Machine::new(), TickClock::default());
        for step in 0..100_000 {
            assert!(machine.error_ns(&clock) <= 1, "step {step}");
            machine.now_ns.set(machine.now_ns.get() + 100);
        }
        // 10 ms; those of the first fifth of a window are all looks.
        let looks = machine.looks.get() as u64;
        assert!(
            (10..12 + DISTANCE_NS_MIN / 100).contains(&looks),
            "{looks} looks"
        );
    }

    #[test]
    fn pauses_of_any_length_do_no_harm() {
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
    fn a_counter_that_is_not_trusted_is_never_reckoned_with() {
        let clock = TickClock::default();
        for ns in (0..10_000_000).step_by(1000) {
            assert_eq!(clock.at(ns, || (3 * ns, ns), || false), 3 * ns);
        }
    }

    #[test]
    fn an_interrupted_reading_is_no_anchor() {
        let (machine, clock) = (Machine::new(), TickClock::default());
        for _ in 0..10 {
            // Each look is interrupted for 4 ms: never two of them side by side.
            machine.read(&clock, 4_000_000);
            assert_eq!(clock.window_ticks.get(), 0);
        }
    }

    #[test]
    fn another_rate_is_learned() {
        let (machine, clock) = (Machine::new(), TickClock::default());
        let read = |machine: &Machine, ticks: u64| {
            clock.at(ticks, || (machine.now_ns.get(), ticks), || true)
        };
        let mut ticks = 7;
        for step in 0..200_000_u64 {
            // Moved to another host: from three ticks a nanosecond to two.
            let rate = if step < 100_000 { 3 } else { 2 };
            ticks += 100 * rate;
            machine.now_ns.set(machine.now_ns.get() + 100);
            let error_ns = read(&machine, ticks).abs_diff(machine.now_ns.get());
            // Wrong until the window ends, and by no more than it is long.
            let is_settled = !(100_000..100_000 + 2 * WINDOW_NS / 100).contains(&step);
            assert!(
                error_ns <= if is_settled { 2 } else { WINDOW_NS },
                "{step}: {error_ns}"
            );
        }
    }

    #[test]
    fn it_follows_the_real_clock_and_never_goes_back() {
        let (real, clock) = (RealClock::new(), TickClock::default());
        let mut last_ns = 0;
        let mut between = 0;
        for _ in 0..200_000 {
            let before_ns = real.now_ns();
            let now_ns = clock.now_ns(|| real.now_ns());
            let after_ns = real.now_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
            // Rates of one window and the next differ a little.
            between +=
                u32::from((before_ns.saturating_sub(5000)..after_ns + 5000).contains(&now_ns));
        }
        assert!(between > 150_000, "{between} of 200,000 readings are near");
    }
}
