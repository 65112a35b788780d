//! How long a node takes: a histogram that forgets.

/// Four ranges to an octave, from 16 µs on: a quantile is at most a fifth too large.
const RANGES_PER_OCTAVE: u32 = 4;
const FIRST_OCTAVE: u32 = 14;
const RANGES: usize = 96;

/// After so many replies all counts are halved.
const HALVED_AFTER: u32 = 2048;

/// The latencies of the last thousands of replies, the latest weighted most.
#[derive(Debug, Clone)]
pub struct Latencies {
    counts: [u32; RANGES],
    total: u32,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            counts: [0; RANGES],
            total: 0,
        }
    }
}

impl Latencies {
    /// Notes a latency in nanoseconds.
    pub fn note(&mut self, latency_ns: u64) {
        if let Some(count) = self.counts.get_mut(range_of(latency_ns)) {
            *count += 1;
        }
        self.total += 1;
        if self.total >= HALVED_AFTER {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    /// The number of replies that count.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.total
    }

    /// The latency in nanoseconds that this share of replies, in thousandths, does not exceed; 0
    /// if there are none.
    #[must_use]
    pub fn quantile_ns(&self, thousandths: u32) -> u64 {
        let wanted = u64::from(self.total) * u64::from(thousandths).min(1000);
        let wanted = wanted.div_ceil(1000).max(1);
        let mut seen = 0;
        for (range, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return end_of(range);
            }
        }
        0
    }
}

/// The range of a latency.
fn range_of(latency_ns: u64) -> usize {
    let octave = latency_ns.max(1).ilog2();
    if octave < FIRST_OCTAVE {
        return 0;
    }
    // The two bits behind the highest one.
    let part = (latency_ns >> (octave - 2)) as u32 & (RANGES_PER_OCTAVE - 1);
    let range = (octave - FIRST_OCTAVE) * RANGES_PER_OCTAVE + part + 1;
    (range as usize).min(RANGES - 1)
}

/// The latency at which a range ends.
fn end_of(range: usize) -> u64 {
    let range = range as u32;
    let octave = FIRST_OCTAVE + range / RANGES_PER_OCTAVE;
    let part = u64::from(range % RANGES_PER_OCTAVE);
    (u64::from(RANGES_PER_OCTAVE) + part) << (octave - 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_testkit::Rng;

    #[test]
    fn quantiles_are_at_most_a_quarter_too_large() {
        let mut rng = Rng::new(1);
        let mut sorted: Vec<u64> = (0..2000).map(|_| 20_000 + rng.below(30_000_000)).collect();
        let mut latencies = Latencies::default();
        sorted.iter().for_each(|latency| latencies.note(*latency));
        sorted.sort_unstable();
        for thousandths in [1, 500, 900, 990, 999, 1000] {
            let exact = sorted[(sorted.len() * thousandths).div_ceil(1000) - 1];
            let found = latencies.quantile_ns(thousandths as u32);
            assert!(
                (exact..=exact * 5 / 4 + 1).contains(&found),
                "{exact} {found}"
            );
        }
        assert_eq!(Latencies::default().quantile_ns(990), 0);
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut latencies = Latencies::default();
        (0..10_000).for_each(|_| latencies.note(50_000_000));
        (0..20_000).for_each(|_| latencies.note(100_000));
        assert!(latencies.quantile_ns(990) < 130_000);
        for latency in [0, 1, u64::MAX] {
            latencies.note(latency);
        }
        assert!(latencies.count() < HALVED_AFTER);
    }
}
