//! Runs of one byte and short periods, which need no bytes of the store.
#![forbid(unsafe_code)]

use crate::compare::{equal_backward, equal_forward};
use crate::params::{PERIOD_MAX, RUN_PROBE_STRIDE};

/// A range of a segment that repeats its first `period` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodicRange {
    /// The offset of the first byte in the segment.
    pub start: u32,
    /// The length in bytes, at least `run_min` of the rules.
    pub length: u32,
    /// The period: 1 for a run of one byte, at most [`PERIOD_MAX`].
    pub period: u8,
}

impl PeriodicRange {
    pub(crate) fn end(&self) -> u32 {
        self.start + self.length
    }
}

/// Finds runs by testing every [`RUN_PROBE_STRIDE`]-th position: a run that is a few bytes longer
/// than the stride is always found, a shorter one sometimes. Runs are appended in ascending order
/// and do not overlap.
pub(crate) fn find(bytes: &[u8], run_min: u32, runs: &mut Vec<PeriodicRange>) {
    let mut floor = 0;
    let mut at = 0;
    while at + PERIOD_MAX + 8 <= bytes.len() {
        if let Some(period) = period_at(bytes, at) {
            let end = at + period + equal_forward(&bytes[at..], &bytes[at + period..]);
            let start = at - equal_backward(&bytes[floor..at], &bytes[floor..at + period]);
            if end - start >= run_min as usize {
                runs.push(PeriodicRange {
                    start: start as u32,
                    length: (end - start) as u32,
                    period: period as u8,
                });
                floor = end;
                at = end.next_multiple_of(RUN_PROBE_STRIDE);
                continue;
            }
        }
        at += RUN_PROBE_STRIDE;
    }
}

/// Returns the shortest distance at which the eight bytes at `at` recur, if it is a possible
/// period.
fn period_at(bytes: &[u8], at: usize) -> Option<usize> {
    let eight = &bytes[at..at + 8];
    let window = &bytes[at + 1..at + PERIOD_MAX + 8];
    window
        .windows(8)
        .position(|other| other == eight)
        .map(|distance| distance + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> Vec<PeriodicRange> {
        let mut runs = vec![];
        find(bytes, 1024, &mut runs);
        runs
    }

    #[test]
    fn zeros_are_one_run() {
        assert_eq!(
            found(&[0; 100_000]),
            [PeriodicRange {
                start: 0,
                length: 100_000,
                period: 1
            }]
        );
    }

    #[test]
    fn a_period_is_found_with_its_exact_ends() {
        let mut bytes: Vec<u8> = (0..50_000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for (i, byte) in bytes[7000..33_333].iter_mut().enumerate() {
            *byte = b"abcdefghijklm"[i % 13];
        }
        bytes[6999] = b'-';
        bytes[33_333] = b'-';
        assert_eq!(
            found(&bytes),
            [PeriodicRange {
                start: 7000,
                length: 26_333,
                period: 13
            }]
        );
    }

    #[test]
    fn ignores_short_runs_and_long_periods() {
        let mut bytes: Vec<u8> = (0..20_000u32).map(|i| (i % 65) as u8).collect();
        assert_eq!(found(&bytes), []);
        bytes.truncate(PERIOD_MAX + 7);
        assert_eq!(found(&bytes), []);
        assert_eq!(found(&[]), []);
    }

    #[test]
    fn runs_do_not_overlap() {
        let mut bytes = vec![0u8; 30_000];
        bytes[10_000..20_000].fill(7);
        let runs = found(&bytes);
        assert_eq!(runs.len(), 3);
        assert!(runs.windows(2).all(|pair| pair[0].end() <= pair[1].start));
    }
}
