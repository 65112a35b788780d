//! A seeded random number generator, and the distributions of a workload.

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, and good enough for arrival times.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Returns the generator of this seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number from 0 to `end`, excluding `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of the product is as uniform as the 64 bits, without a division.
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number between 0 and 1, both excluded.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
    }
}

/// A distribution of times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Always this time, nanoseconds.
    Fixed(u64),
    /// Uniform from the first to the second time, nanoseconds.
    Uniform(u64, u64),
    /// Exponential with this mean, nanoseconds: the gaps between independent arrivals.
    Exponential(u64),
    /// Log-normal with this median and 99th percentile, nanoseconds: resembles measured wake-up
    /// times.
    Skewed {
        /// The median.
        median_ns: u64,
        /// The 99th percentile.
        p99_ns: u64,
    },
    /// Measured quantiles, ascending, nanoseconds, at [`QUANTILES_PERMILLE`]. Uniform between them,
    /// and never above the last.
    Measured([u64; QUANTILES_PERMILLE.len()]),
}

/// The quantiles of [`Distribution::Measured`], thousandths.
pub const QUANTILES_PERMILLE: [usize; 9] = [0, 100, 250, 500, 750, 900, 990, 995, 999];

/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326;

impl Distribution {
    /// Draws a time, nanoseconds.
    pub fn draw(&self, random: &mut Random) -> u64 {
        match *self {
            Distribution::Fixed(value_ns) => value_ns,
            Distribution::Uniform(first_ns, last_ns) => {
                let span = last_ns.saturating_sub(first_ns);
                first_ns.saturating_add(random.below(span.saturating_add(1)))
            }
            // Casts from floats saturate.
            Distribution::Exponential(mean_ns) => (-random.unit().ln() * mean_ns as f64) as u64,
            Distribution::Skewed { median_ns, p99_ns } => {
                let median = median_ns.max(1) as f64;
                let tail = (p99_ns as f64 / median).max(1.0);
                // The sum of twelve uniform numbers minus six is nearly normal and bounded, which
                // excludes absurd wake-up times.
                let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
                (median * tail.powf(normal / NORMAL_P99)) as u64
            }
            Distribution::Measured(values_ns) => interpolated(&values_ns, random.below(1_000_000)),
        }
    }

    /// Draws the time until the end of an interval that began earlier, nanoseconds: the time of the
    /// first arrival. An approximation for skewed distributions, because it does not favor longer
    /// intervals.
    pub fn draw_residual(&self, random: &mut Random) -> u64 {
        let whole_ns = self.draw(random);
        match self {
            // Memoryless. Half of it would double the load at the start.
            Distribution::Exponential(_) => whole_ns,
            _ => random.below(whole_ns),
        }
    }

    /// The mean, nanoseconds; for skewed and measured distributions the median.
    pub fn typical_ns(&self) -> u64 {
        match *self {
            Distribution::Fixed(value_ns) | Distribution::Exponential(value_ns) => value_ns,
            Distribution::Uniform(first_ns, last_ns) => first_ns / 2 + last_ns / 2,
            Distribution::Skewed { median_ns, .. } => median_ns,
            Distribution::Measured(values_ns) => interpolated(&values_ns, 500_000),
        }
    }
}

/// The value that `millionths` of all values do not exceed.
fn interpolated(values_ns: &[u64; QUANTILES_PERMILLE.len()], millionths: u64) -> u64 {
    let points = QUANTILES_PERMILLE
        .iter()
        .map(|&permille| permille as u64 * 1000)
        .zip(values_ns);
    let mut below = (0, values_ns[0]);
    for (at, &value_ns) in points {
        if at >= millionths && at > below.0 {
            let part =
                u128::from(value_ns.saturating_sub(below.1)) * u128::from(millionths - below.0);
            return below.1 + (part / u128::from(at - below.0)) as u64;
        }
        below = (at, value_ns);
    }
    below.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(duration: Distribution) -> Vec<u64> {
        let mut random = Random::new(1);
        let mut drawn: Vec<u64> = (0..100_000).map(|_| duration.draw(&mut random)).collect();
        drawn.sort_unstable();
        drawn
    }

    fn is_near(value: u64, expected: u64, percent: u64) -> bool {
        value.abs_diff(expected) * 100 <= expected * percent
    }

    #[test]
    fn distributions_have_the_stated_quantiles() {
        let uniform = sorted(Distribution::Uniform(100, 200));
        assert_eq!((uniform[0], uniform[99_999]), (100, 200));
        assert!(is_near(uniform[50_000], 150, 2));
        let exponential = sorted(Distribution::Exponential(1_000_000));
        assert!(
            is_near(exponential[50_000], 693_147, 2),
            "{}",
            exponential[50_000]
        );
        assert!(
            is_near(exponential[99_000], 4_605_170, 5),
            "{}",
            exponential[99_000]
        );
        let skewed = sorted(Distribution::Skewed {
            median_ns: 10_000,
            p99_ns: 100_000,
        });
        assert!(is_near(skewed[50_000], 10_000, 3), "{}", skewed[50_000]);
        assert!(is_near(skewed[99_000], 100_000, 6), "{}", skewed[99_000]);
    }

    #[test]
    fn measured_distributions_are_uniform_between_quantiles() {
        let measured = Distribution::Measured([10, 20, 30, 40, 50, 60, 1_000, 1_500, 2_000]);
        assert_eq!(measured.typical_ns(), 40);
        let drawn = sorted(measured);
        assert!(
            drawn[0] <= 11 && drawn[99_999] == 2_000,
            "{} {}",
            drawn[0],
            drawn[99_999]
        );
        let quantiles = [5_000, 10_000, 50_000, 82_500, 99_000].map(|index| drawn[index]);
        for (quantile, expected) in quantiles.into_iter().zip([15, 20, 40, 55, 1_000]) {
            assert!(is_near(quantile, expected, 6), "{quantiles:?}");
        }
    }

    #[test]
    fn below_respects_its_limit() {
        let mut random = Random::new(7);
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
