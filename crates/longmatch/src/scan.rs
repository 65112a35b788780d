//! Step A: finds the runs and anchors of one segment. Segments are independent of each other.
#![forbid(unsafe_code)]

use crate::fingerprint::fingerprint;
use crate::params::{
    ANCHOR_BITS_MAX, EPOCH_BYTES_MAX, FINGERPRINT_BYTES, INCOMPRESSIBLE_ANCHOR_BITS, Rules,
};
use crate::run::PeriodicRange;
use crate::{anchor, incompressible, run};

/// Bytes of a segment that are known to be those of earlier content, because a digest says so. They
/// are neither compared nor searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRange {
    /// Where in the segment it begins.
    pub start: u32,
    /// Its length in bytes, at least 1.
    pub length: u32,
    /// Where the earlier content begins.
    pub offset_in_content: u64,
}

impl KnownRange {
    fn end(&self) -> u32 {
        self.start + self.length
    }
}

/// Runs and anchors of one segment; positions are relative to the segment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SegmentScan {
    /// In ascending order, not overlapping.
    pub runs: Vec<PeriodicRange>,
    /// In ascending order, overlapping neither each other nor a run.
    pub known: Vec<KnownRange>,
    /// Positions of the anchors in ascending order, none inside a run or a known range.
    pub positions: Vec<u32>,
    /// The fingerprint of each anchor.
    pub fingerprints: Vec<u64>,
}

impl SegmentScan {
    /// Empties the lists and retains their memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.known.clear();
        self.positions.clear();
        self.fingerprints.clear();
    }

    /// Iterates over the ranges between the runs and known ranges, as `(start, end)`.
    pub(crate) fn gaps(&self, length: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut runs = self
            .runs
            .iter()
            .map(|run| (run.start, run.end()))
            .peekable();
        let mut known = self
            .known
            .iter()
            .map(|known| (known.start, known.end()))
            .peekable();
        let mut next = move || match (runs.peek(), known.peek()) {
            (Some(run), Some(other)) if other < run => known.next(),
            (None, _) => known.next(),
            _ => runs.next(),
        };
        let mut start = 0;
        let mut is_done = false;
        let gaps = std::iter::from_fn(move || {
            let covered = next();
            if covered.is_none() && std::mem::replace(&mut is_done, true) {
                return None;
            }
            let (end, after) =
                covered.map_or((length, length), |(from, to)| (from as usize, to as usize));
            Some((std::mem::replace(&mut start, after), end))
        });
        gaps.filter(|(start, end)| start < end)
    }
}

/// Scans one segment into `scan`, whose previous content is discarded. `bytes` has a length of at
/// most [`EPOCH_BYTES_MAX`].
pub fn scan_segment(bytes: &[u8], rules: &Rules, scan: &mut SegmentScan) {
    scan_beside(bytes, &[], rules, scan);
}

/// As [`scan_segment`], of a segment with known ranges, in ascending order.
pub fn scan_beside(bytes: &[u8], known: &[KnownRange], rules: &Rules, scan: &mut SegmentScan) {
    assert!(
        bytes.len() <= EPOCH_BYTES_MAX,
        "a segment of {} bytes is larger than an epoch",
        bytes.len()
    );
    scan.clear();
    scan.known.extend(known);
    let mut runs = std::mem::take(&mut scan.runs);
    for (start, end) in scan.gaps(bytes.len()) {
        let first = runs.len();
        run::find(&bytes[start..end], rules.run_min, &mut runs);
        runs[first..]
            .iter_mut()
            .for_each(|run| run.start += start as u32);
    }
    scan.runs = runs;
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
        let known = |start, length| KnownRange {
            start,
            length,
            offset_in_content: 7,
        };
        let scan = SegmentScan {
            runs: vec![run(0, 10), run(20, 5), run(25, 5)],
            ..Default::default()
        };
        assert_eq!(scan.gaps(40).collect::<Vec<_>>(), [(10, 20), (30, 40)]);
        let scan = SegmentScan {
            known: vec![known(10, 3), known(30, 10)],
            ..scan
        };
        assert_eq!(scan.gaps(40).collect::<Vec<_>>(), [(13, 20)]);
        assert_eq!(SegmentScan::default().gaps(5).collect::<Vec<_>>(), [(0, 5)]);
        assert_eq!(SegmentScan::default().gaps(0).count(), 0);
    }
}
