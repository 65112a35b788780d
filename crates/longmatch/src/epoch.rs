//! An epoch: segments that are matched at the same time, against the store and against each other.
#![forbid(unsafe_code)]

use crate::scan::SegmentScan;

/// One segment of an epoch.
#[derive(Clone, Copy)]
pub struct EpochSegment<'a> {
    /// The offset of its first byte in the epoch. Segments follow each other without gaps.
    pub start: u32,
    /// Its content.
    pub bytes: &'a [u8],
    /// The result of step A.
    pub scan: &'a SegmentScan,
}

impl EpochSegment<'_> {
    pub(crate) fn end(&self) -> u32 {
        self.start + self.bytes.len() as u32
    }
}

/// All segments of an epoch, in order.
#[derive(Clone, Copy)]
pub struct Epoch<'a> {
    segments: &'a [EpochSegment<'a>],
}

impl<'a> Epoch<'a> {
    /// Creates the epoch of these segments. Each must start where the one before ends.
    pub fn new(segments: &'a [EpochSegment<'a>]) -> Epoch<'a> {
        debug_assert!(segments.first().is_none_or(|first| first.start == 0));
        debug_assert!(
            segments
                .windows(2)
                .all(|pair| pair[0].end() == pair[1].start)
        );
        Epoch { segments }
    }

    /// Returns its segments.
    pub fn segments(&self) -> &'a [EpochSegment<'a>] {
        self.segments
    }

    /// Returns its length in bytes.
    pub fn length(&self) -> u32 {
        self.segments.last().map_or(0, EpochSegment::end)
    }

    /// Returns the segment that holds the byte at `position`, which must be inside the epoch.
    pub(crate) fn segment_at(&self, position: u32) -> &'a EpochSegment<'a> {
        let after = self
            .segments
            .partition_point(|segment| segment.start <= position);
        &self.segments[after - 1]
    }

    /// Returns the bytes from `position`, which must be inside the epoch, to the end of their
    /// segment.
    pub(crate) fn from(&self, position: u32) -> &'a [u8] {
        let segment = self.segment_at(position);
        &segment.bytes[(position - segment.start) as usize..]
    }

    /// Iterates over the bytes of `start..end` as contiguous slices, one per segment.
    pub fn slices(self, start: u32, end: u32) -> impl Iterator<Item = &'a [u8]> {
        let mut at = start;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let segment = self.segment_at(at);
            let stop = end.min(segment.end());
            let slice =
                &segment.bytes[(at - segment.start) as usize..(stop - segment.start) as usize];
            at = stop;
            Some(slice)
        })
    }
}

/// The candidate of an anchor whose fingerprint no earlier anchor of the epoch has.
pub const NO_CANDIDATE: u32 = u32::MAX;

/// The largest number of slots of the table for repeats inside an epoch: 16 MiB of memory.
const SLOTS_MAX: usize = 1 << 21;

/// The number of slots of the table that [`find_in_epoch`] needs for this epoch.
pub fn table_slots(epoch: &Epoch<'_>) -> usize {
    let segments = epoch.segments().iter();
    let anchors: usize = segments.map(|segment| segment.scan.positions.len()).sum();
    (anchors * 2).next_power_of_two().clamp(64, SLOTS_MAX)
}

/// Step B: for every anchor of the epoch, in order, finds the first earlier anchor of the epoch
/// with the same fingerprint, as a position in the epoch. It does not use the index, so it can run
/// ahead of the steps that do.
///
/// `candidates` receives one list per segment, as long as the segment's list of anchors. `table` is
/// memory to reuse, in which a caller may reserve [`table_slots`].
pub fn find_in_epoch(epoch: &Epoch<'_>, table: &mut Vec<u64>, candidates: &mut Vec<Vec<u32>>) {
    let slots = table_slots(epoch);
    table.clear();
    table.resize(slots, 0);
    candidates.resize_with(epoch.segments().len(), Vec::new);
    let mut free = slots - slots / 4;
    for (segment, found) in epoch.segments().iter().zip(candidates) {
        found.clear();
        let scan = segment.scan;
        found.extend(scan.positions.iter().zip(&scan.fingerprints).map(
            |(&position, &fingerprint)| {
                first_or_insert(table, fingerprint, segment.start + position, &mut free)
            },
        ));
    }
}

/// Returns the position stored for `fingerprint`. If there is none, stores `position` while `free`
/// slots are left.
#[inline]
fn first_or_insert(table: &mut [u64], fingerprint: u64, position: u32, free: &mut usize) -> u32 {
    let mask = table.len() - 1;
    let tag = fingerprint >> 32;
    let mut slot = fingerprint as usize & mask;
    loop {
        let entry = table[slot];
        if entry == 0 {
            if *free > 0 {
                *free -= 1;
                table[slot] = tag << 32 | u64::from(position + 1);
            }
            return NO_CANDIDATE;
        }
        if entry >> 32 == tag {
            return entry as u32 - 1;
        }
        slot = (slot + 1) & mask;
    }
}

/// Whether enough of an epoch's anchors have candidates (see [`find_in_epoch`]) that a codec may
/// find repeats in a block although a sample of the block shows none.
pub fn has_repeats(candidates: &[Vec<u32>]) -> bool {
    /// One repeated anchor in this many: below that, repeats make up less than half a percent of
    /// the bytes.
    const ANCHORS_PER_REPEAT_MIN: usize = 256;
    let anchors: usize = candidates.iter().map(Vec::len).sum();
    let is_repeated = |&&from: &&u32| from != NO_CANDIDATE;
    let repeated = candidates.iter().flatten().filter(is_repeated).count();
    repeated * ANCHORS_PER_REPEAT_MIN > anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(fingerprints: &[u64]) -> SegmentScan {
        SegmentScan {
            runs: vec![],
            known: vec![],
            positions: (0..fingerprints.len() as u32).map(|i| i * 16).collect(),
            fingerprints: fingerprints
                .iter()
                .map(|f| f.wrapping_mul(0x9E37_79B9_7F4A_7C15))
                .collect(),
        }
    }

    #[test]
    fn finds_the_first_position_of_a_fingerprint() {
        let (a, b) = (scan(&[1, 2, 1]), scan(&[3, 2, 1]));
        let bytes = [0; 64];
        let segments = [
            EpochSegment {
                start: 0,
                bytes: &bytes,
                scan: &a,
            },
            EpochSegment {
                start: 64,
                bytes: &bytes,
                scan: &b,
            },
        ];
        let mut candidates = vec![];
        find_in_epoch(&Epoch::new(&segments), &mut vec![], &mut candidates);
        assert_eq!(
            candidates,
            [
                vec![NO_CANDIDATE, NO_CANDIDATE, 0],
                vec![NO_CANDIDATE, 16, 0]
            ]
        );
    }

    #[test]
    fn slices_end_at_segment_borders() {
        let empty = SegmentScan::default();
        let segments = [
            EpochSegment {
                start: 0,
                bytes: b"abc",
                scan: &empty,
            },
            EpochSegment {
                start: 3,
                bytes: b"defg",
                scan: &empty,
            },
        ];
        let epoch = Epoch::new(&segments);
        assert_eq!(epoch.length(), 7);
        assert_eq!(epoch.slices(1, 5).collect::<Vec<_>>(), [&b"bc"[..], b"de"]);
        assert_eq!(epoch.slices(3, 3).count(), 0);
    }
}
