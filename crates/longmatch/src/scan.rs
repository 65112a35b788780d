//! Step A: finds the runs and anchors of one segment. Segments are independent of each other.
#![forbid(unsafe_code)]

use crate::fingerprint::fingerprint;
use crate::params::{
    ANCHOR_BITS_MAX, EPOCH_BYTES_MAX, FINGERPRINT_BYTES, INCOMPRESSIBLE_ANCHOR_BITS, Rules,
};
use crate::run::PeriodicRange;
use crate::{anchor, incompressible, run};

/// Runs and anchors of one segment; positions are relative to the segment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SegmentScan {
    /// In ascending order, not overlapping.
    pub runs: Vec<PeriodicRange>,
    /// Positions of the anchors in ascending order, none inside a run.
    pub positions: Vec<u32>,
    /// The fingerprint of each anchor.
    pub fingerprints: Vec<u64>,
}

impl SegmentScan {
    /// Empties the lists and retains their memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.positions.clear();
        self.fingerprints.clear();
    }

    /// Iterates over the ranges between the runs, as `(start, end)`.
    pub(crate) fn gaps(&self, length: usize) -> impl Iterator<Item = (usize, usize)> {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|run| run.end() as usize));
        let ends = self
            .runs
            .iter()
            .map(|run| run.start as usize)
            .chain(std::iter::once(length));
        starts.zip(ends).filter(|(start, end)| start < end)
    }
}

/// Scans one segment into `scan`, whose previous content is discarded. `bytes` has a length of at
/// most [`EPOCH_BYTES_MAX`].
pub fn scan_segment(bytes: &[u8], rules: &Rules, scan: &mut SegmentScan) {
    assert!(
        bytes.len() <= EPOCH_BYTES_MAX,
        "a segment of {} bytes is larger than an epoch",
        bytes.len()
    );
    scan.clear();
    run::find(bytes, rules.run_min, &mut scan.runs);
    let anchor_bits = if incompressible::is_incompressible(bytes) {
        (rules.anchor_bits + INCOMPRESSIBLE_ANCHOR_BITS).min(ANCHOR_BITS_MAX)
    } else {
        rules.anchor_bits
    };
    let mut positions = std::mem::take(&mut scan.positions);
    for (start, end) in scan.gaps(bytes.len()) {
        anchor::find(bytes, start..end, anchor_bits, |position| {
            positions.push(position as u32)
        });
    }
    scan.fingerprints.extend(positions.iter().map(|&position| {
        let window = bytes[position as usize..].first_chunk::<FINGERPRINT_BYTES>();
        window.map_or(0, fingerprint)
    }));
    scan.positions = positions;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_the_ranges_between_runs() {
        let run = |start, length| PeriodicRange {
            start,
            length,
            period: 1,
        };
        let scan = SegmentScan {
            runs: vec![run(0, 10), run(20, 5), run(25, 5)],
            ..Default::default()
        };
        assert_eq!(scan.gaps(40).collect::<Vec<_>>(), [(10, 20), (30, 40)]);
        assert_eq!(SegmentScan::default().gaps(5).collect::<Vec<_>>(), [(0, 5)]);
        assert_eq!(SegmentScan::default().gaps(0).count(), 0);
    }
}
