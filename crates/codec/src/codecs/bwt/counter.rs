//! Counters: the probability of a 1 in a context, stored as log odds, so that a mixer can use them
//! directly.
//!
//! A counter moves like a probability that goes 1 / 2^rate of the way to each bit (Mahoney, "Data
//! Compression Explained", 4.1.2). In log odds x, with odds o = e^-x against a 1, that is x +
//! ln((2^rate + o) / (2^rate - 1)) after a 1: a step that depends only on x and the rate, and is
//! therefore read from a table. Counters of probabilities need a table lookup before mixing, which
//! delays every decision. Here the lookup follows the decision.

/// Log odds in 1/4096 natural units, within ±8.
pub(super) type Counter = i16;

/// Counters that agree in the bits above this many have the same step.
const BUCKET_LOG: u32 = 6;
const BUCKETS: usize = 1 << (16 - BUCKET_LOG);

/// The steps of counters of one rate: after a 0 and after a 1, by bucket (as an unsigned number).
pub(super) struct Steps([[Counter; BUCKETS]; 2]);

/// Rate 4, since the statistics of a context change quickly along a transformed block.
pub(super) static FAST: Steps = Steps::with_rate(4);
/// Rate 5.
pub(super) static SLOW: Steps = Steps::with_rate(5);

impl Steps {
    #[inline(always)]
    pub(super) fn learn(&self, counter: &mut Counter, bit: bool) {
        let bucket = usize::from(*counter as u16 >> BUCKET_LOG);
        // This cannot overflow: a test checks the steps of every counter.
        *counter = counter.wrapping_add(self.0[usize::from(bit)][bucket]);
    }

    /// Computed with integers only, so that every machine has the same steps.
    const fn with_rate(rate: u32) -> Self {
        let odds = odds_against_one();
        let mut steps = [[0; BUCKETS]; 2];
        let mut logarithm = Logarithm::one();
        // From certain 1s to certain 0s: steps after a 1 become longer.
        let mut bucket = MIDDLE - 1;
        while bucket >= -MIDDLE {
            logarithm.rise_to(((ONE << rate) + odds[index(bucket)]) / ((1 << rate) - 1));
            let last_of_bucket = (bucket << BUCKET_LOG) + (1 << BUCKET_LOG) - 1;
            let limit = Counter::MAX as i32 - last_of_bucket;
            let step = if logarithm.units < limit { logarithm.units } else { limit };
            steps[1][index(bucket)] = step as Counter;
            // By symmetry, a 0 moves the counter with negated log odds as much in the other
            // direction.
            steps[0][index(-1 - bucket)] = -step as Counter;
            bucket -= 1;
        }
        Self(steps)
    }
}

/// Buckets are numbered from minus this to this minus one.
const MIDDLE: i32 = BUCKETS as i32 / 2;

const fn index(bucket: i32) -> usize {
    bucket as usize & (BUCKETS - 1)
}

/// The fraction bits of the numbers below.
const FRACTION_BITS: u32 = 56;
const ONE: u128 = 1 << FRACTION_BITS;
/// e^(1/4096): one unit.
const E_UNIT: u128 = 72_075_188_371_630_773;
/// e^(-1/64): one bucket.
const E_BUCKET: u128 = 70_940_444_589_522_213;
/// e^(-1/128): half a bucket.
const E_HALF: u128 = 71_496_837_392_306_472;

/// The odds against a 1 in the middle of each bucket.
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
    /// The number whose logarithm is one unit larger.
    next: u128,
}

impl Logarithm {
    const fn one() -> Self {
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

    const RATES: [(&Steps, i32); 2] = [(&FAST, 4), (&SLOW, 5)];

    #[test]
    fn steps_match_those_of_probabilities() {
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
    fn steps_stay_in_range() {
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
