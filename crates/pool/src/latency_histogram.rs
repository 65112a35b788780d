//! Latency histograms that many threads add to.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::histogram::{Histogram, TimeHistogram};

/// Latencies that many threads add to.
#[derive(Debug)]
pub struct SharedHistogram {
    times: Histogram,
    sum_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for SharedHistogram {
    fn default() -> Self {
        SharedHistogram {
            times: Histogram::default(),
            sum_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
        }
    }
}

impl SharedHistogram {
    /// Counts a latency.
    pub fn add(&self, time_ns: u64) {
        self.times.add_shared(time_ns);
        self.sum_ns.fetch_add(time_ns, Ordering::Relaxed);
        // Most calls change neither limit: a load is cheaper than an exchange.
        if time_ns < self.min_ns.load(Ordering::Relaxed) {
            self.min_ns.fetch_min(time_ns, Ordering::Relaxed);
        }
        if time_ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.fetch_max(time_ns, Ordering::Relaxed);
        }
    }

    /// The latencies so far.
    pub fn snapshot(&self) -> LatencyHistogram {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut times = TimeHistogram::default();
        self.times.add_to(&mut times);
        LatencyHistogram {
            times,
            sum_ns: load(&self.sum_ns),
            min_ns: load(&self.min_ns),
            max_ns: load(&self.max_ns),
        }
    }

    /// Forgets all.
    pub fn reset(&self) {
        self.times.reset();
        self.sum_ns.store(0, Ordering::Relaxed);
        self.min_ns.store(u64::MAX, Ordering::Relaxed);
        self.max_ns.store(0, Ordering::Relaxed);
    }
}

/// The latencies of an operation; percentiles have a resolution of 1/16.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyHistogram {
    times: TimeHistogram,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl LatencyHistogram {
    /// The number of calls.
    pub fn count(&self) -> u64 {
        self.times.count()
    }

    /// The sum of all latencies, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The average latency in nanoseconds; 0 without calls.
    pub fn average_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count()).unwrap_or(0)
    }

    /// The shortest latency in nanoseconds; 0 without calls.
    pub fn min_ns(&self) -> u64 {
        match self.min_ns {
            u64::MAX => 0,
            min_ns => min_ns,
        }
    }

    /// The longest latency in nanoseconds; 0 without calls.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The number of calls that took less than this power of two, in nanoseconds.
    pub fn count_below_ns(&self, power_of_two_ns: u64) -> u64 {
        self.times.count_below_ns(power_of_two_ns)
    }

    /// The latency that a `share` (0 to 1) of the calls does not exceed, in nanoseconds, rounded up
    /// by at most 1/16; 0 without calls.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let quantile_ns = self.times.quantile_ns(share).unwrap_or(0);
        quantile_ns.min(self.max_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_times(
            mut times in proptest::collection::vec(0u64..1 << 40, 1..200),
            share in 0.0f64..1.0,
        ) {
            let histogram = SharedHistogram::default();
            times.iter().for_each(|&time| histogram.add(time));
            times.sort_unstable();
            let found = histogram.snapshot();
            let rank = ((times.len() as f64 * share).ceil() as usize).max(1);
            let exact = times[rank - 1];
            let quantile = found.quantile_ns(share);
            prop_assert!(exact <= quantile && quantile <= exact + exact / 16);
            prop_assert_eq!(found.count(), times.len() as u64);
            prop_assert_eq!(found.min_ns(), times[0]);
            prop_assert_eq!(found.max_ns(), times[times.len() - 1]);
            for log2 in 0..40 {
                let below = times.iter().filter(|&&time| time < 1 << log2).count() as u64;
                prop_assert_eq!(found.count_below_ns(1 << log2), below);
            }
            prop_assert_eq!(found.average_ns(), times.iter().sum::<u64>() / times.len() as u64);
        }
    }

    #[test]
    fn without_calls_everything_is_zero() {
        let none = SharedHistogram::default().snapshot();
        assert_eq!(
            (none.quantile_ns(0.5), none.min_ns(), none.max_ns()),
            (0, 0, 0)
        );
    }
}
