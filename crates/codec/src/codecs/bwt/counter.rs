//! Counters: how likely a one is in a context, kept as log odds, so that a mixer takes them as they are.
//!
//! A counter moves as a probability would that goes 1 / 2^rate of the way to what it saw (Mahoney, "Data
//! Compression Explained", 4.1.2). In log odds x, with odds o = e^-x against a one, that is x + ln((2^rate + o) /
//! (2^rate - 1)) after a one: a step that depends on x and the rate alone, and so comes from a table. Reading a table
//! before mixing, as counters of probabilities need, makes every decision wait; here it is read after.

/// Log odds in 1/4096 natural units, within ±8.
pub(super) type Counter = i16;

/// Counters with the same bits above this many share a step.
const BUCKET_LOG: u32 = 6;
const BUCKETS: usize = 1 << (16 - BUCKET_LOG);

/// The steps of counters of one rate: after a zero, and after a one, by bucket (as an unsigned number).
pub(super) struct Steps([[Counter; BUCKETS]; 2]);

/// Rate 4: what a context says changes quickly along a transformed block.
pub(super) static QUICK: Steps = Steps::with_rate(4);
/// Rate 5.
pub(super) static SLOW: Steps = Steps::with_rate(5);

impl Steps {
    /// Moves `counter` after it saw `bit`.
    #[inline(always)]
    pub(super) fn learn(&self, counter: &mut Counter, bit: bool) {
        let bucket = usize::from(*counter as u16 >> BUCKET_LOG);
        // Within the range: the test of every counter holds the steps to that.
        *counter = counter.wrapping_add(self.0[usize::from(bit)][bucket]);
    }

    /// With integers only, so that every machine has the same steps.
    const fn with_rate(rate: u32) -> Self {
        let odds = odds_against_one();
        let mut steps = [[0; BUCKETS]; 2];
        let mut logarithm = Logarithm::of_one();
        // From sure ones to sure zeros: steps after a one become longer.
        let mut bucket = MIDDLE - 1;
        while bucket >= -MIDDLE {
            logarithm.rise_to(((ONE << rate) + odds[index(bucket)]) / ((1 << rate) - 1));
            let last_of_bucket = (bucket << BUCKET_LOG) + (1 << BUCKET_LOG) - 1;
            let room = Counter::MAX as i32 - last_of_bucket;
            let step = if logarithm.units < room {
                logarithm.units
            } else {
                room
            };
            steps[1][index(bucket)] = step as Counter;
            // As far on the other side of even odds, a zero moves as much the other way.
            steps[0][index(-1 - bucket)] = -step as Counter;
            bucket -= 1;
        }
        Self(steps)
    }
}

/// Buckets are numbered from minus this to this less one.
const MIDDLE: i32 = BUCKETS as i32 / 2;

const fn index(bucket: i32) -> usize {
    bucket as usize & (BUCKETS - 1)
}

/// Fraction bits of the numbers that the steps are made with.
const FRACTION_BITS: u32 = 56;
const ONE: u128 = 1 << FRACTION_BITS;
/// e^(1/4096), a unit.
const E_UNIT: u128 = 72_075_188_371_630_773;
/// e^(-1/64), a bucket.
const E_BUCKET: u128 = 70_940_444_589_522_213;
/// e^(-1/128), half a bucket.
const E_HALF: u128 = 71_496_837_392_306_472;

/// In the middle of each bucket.
const fn odds_against_one() -> [u128; BUCKETS] {
    let mut odds = [0; BUCKETS];
    let mut falling = E_HALF;
    let mut bucket = 0;
    while bucket < MIDDLE {
        odds[index(bucket)] = falling;
        odds[index(-1 - bucket)] = (1 << (2 * FRACTION_BITS)) / falling;
        falling = (falling * E_BUCKET) >> FRACTION_BITS;
        bucket += 1;
    }
    odds
}

/// Natural logarithms of rising numbers, in units, rounded down.
struct Logarithm {
    units: i32,
    /// The number with one unit more.
    next: u128,
}

impl Logarithm {
    const fn of_one() -> Self {
        Self {
            units: 0,
            next: E_UNIT,
        }
    }

    const fn rise_to(&mut self, number: u128) {
        while self.next <= number {
            self.units += 1;
            self.next = (self.next * E_UNIT) >> FRACTION_BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [(&Steps, i32); 2] = [(&QUICK, 4), (&SLOW, 5)];

    #[test]
    fn steps_are_those_of_probabilities() {
        for (steps, rate) in RATES {
            for bucket in -MIDDLE..MIDDLE {
                let x = (f64::from(bucket) + 0.5) / 64.0;
                let p = 1.0 / (1.0 + (-x).exp());
                for (bit, target) in [(0, 0.0), (1, 1.0)] {
                    let moved = p + (target - p) / f64::from(1 << rate);
                    let exact = ((moved / (1.0 - moved)).ln() - x) * 4096.0;
                    let step = f64::from(steps.0[bit][index(bucket)]);
                    let at_the_end = x.abs() > 7.6 && exact * x > 0.0;
                    let tolerance = if at_the_end { exact.abs() } else { 1.0 };
                    assert!(
                        (step - exact).abs() <= tolerance,
                        "{bit} {x} {step} {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn steps_end_within_the_range() {
        for (steps, _) in RATES {
            for counter in Counter::MIN..=Counter::MAX {
                for bit in [false, true] {
                    let mut moved = counter;
                    steps.learn(&mut moved, bit);
                    assert!(moved == counter || (moved > counter) == bit, "{counter}");
                }
            }
        }
    }
}
