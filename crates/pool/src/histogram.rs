//! Histograms of times, with buckets whose width grows with the time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets per doubling: a bucket's width is at most 1/16 of its lower end.
const STEPS: u32 = 16;
const STEP_BITS: u32 = STEPS.ilog2();
/// Every `u64` has a bucket.
const BUCKETS: usize = ((64 - STEP_BITS + 1) * STEPS) as usize;

/// The number of times in each bucket. Log-linear as in HdrHistogram (Gil Tene): 16 buckets per
/// doubling.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Histogram {
    /// Counts one time; other threads may count concurrently.
    pub fn add_shared(&self, time_ns: u64) {
        self.buckets[bucket_of(time_ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Ordering::Relaxed);
        }
    }

    /// Adds the counts so far to `times`.
    pub fn add_to(&self, times: &mut TimeHistogram) {
        times.counts.resize(BUCKETS, 0);
        for (count, bucket) in times.counts.iter_mut().zip(&self.buckets) {
            *count += bucket.load(Ordering::Relaxed);
        }
    }
}

fn bucket_of(time_ns: u64) -> usize {
    if time_ns < u64::from(STEPS) {
        return time_ns as usize;
    }
    let doublings = time_ns.ilog2() - STEP_BITS;
    let step = (time_ns >> doublings) as u32 - STEPS;
    ((doublings + 1) * STEPS + step) as usize
}

fn bucket_end(bucket: usize) -> u64 {
    let (doublings, step) = (bucket as u32 / STEPS, bucket as u32 % STEPS);
    if doublings == 0 {
        return u64::from(step);
    }
    let first = u64::from(STEPS + step) << (doublings - 1);
    first + ((1u64 << (doublings - 1)) - 1)
}

/// The counts of a histogram, added up over workers. The resolution is 1/16.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeHistogram {
    counts: Vec<u64>,
}

impl TimeHistogram {
    /// The number of counted times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time that a `share` (0 to 1) of the counted times does not exceed, in nanoseconds,
    /// rounded up by at most 1/16; `None` when nothing was counted. `quantile_ns(1.0)` is the
    /// longest time.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        // At least one, at most all.
        let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total);
        let mut counted = 0;
        let bucket = self.counts.iter().position(|count| {
            counted += count;
            counted >= wanted
        })?;
        Some(bucket_end(bucket))
    }

    /// The number of times less than this power of two, in nanoseconds.
    pub fn count_below_ns(&self, power_of_two_ns: u64) -> u64 {
        let buckets = bucket_of(power_of_two_ns).min(self.counts.len());
        self.counts[..buckets].iter().sum()
    }

    pub(crate) fn count_ns(&mut self, time_ns: u64) {
        self.counts.resize(BUCKETS, 0);
        self.counts[bucket_of(time_ns)] += 1;
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &TimeHistogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_within_its_bucket() {
        let mut times: Vec<u64> = (0..200).collect();
        times.extend((7..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1u64 << bit) + 1]));
        times.push(u64::MAX);
        for time in times {
            let bucket = bucket_of(time);
            assert!(bucket < BUCKETS, "{time}");
            assert!(bucket_end(bucket) >= time, "{time}");
            assert!(bucket == 0 || bucket_end(bucket - 1) < time, "{time}");
            assert!(
                bucket_end(bucket) - time <= time / u64::from(STEPS),
                "{time}"
            );
        }
    }

    #[test]
    fn quantiles_match_those_of_the_sorted_times() {
        let histogram = Histogram::default();
        for time in 1..=1000 {
            histogram.add_shared(time);
        }
        let mut times = TimeHistogram::default();
        assert_eq!(times.quantile_ns(0.5), None);
        histogram.add_to(&mut times);
        let mut twice = times.clone();
        twice.add(&times);
        for counted in [times, twice] {
            for (share, exact) in [(0.0, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
                let found = counted.quantile_ns(share).unwrap();
                assert!(found >= exact && found <= exact + exact / 16, "{share}");
            }
        }
    }
}
