//! Segments, collected into epochs.

use std::ops::Range;

use refrain_longmatch::{Epoch, EpochSegment, SegmentScan};
use refrain_protect::{HASH_BYTES, HashKind, MemberSegment};

/// An epoch is full with this much content, in bytes, or less if the archive's reach is small.
///
/// Up to three times as much is in memory when an epoch is committed: its segments, its fresh
/// pages, and the content read ahead. A larger epoch would not fit a small budget, and a smaller
/// one would leave many cores without work between commits.
pub(crate) const EPOCH_BYTES: u64 = 16 << 20;

/// An epoch is full with this many segments, because members may be tiny.
pub(crate) const EPOCH_SEGMENTS_MAX: usize = 4096;

/// A hole counts as this much content of its epoch, in bytes: with too many holes, an epoch would
/// have too many bytes of frames that a reader holds back.
const HOLE_COUNTS_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentPlan {
    pub member: usize,
    pub offset_in_member: u64,
    /// The number of bytes to read; a stream may end earlier.
    pub length_bytes: usize,
    /// The length of the unread zeros before it.
    pub hole_bytes: u64,
    /// How its member is hashed.
    pub hash: HashKind,
}

pub(crate) struct ReadSegment {
    pub member: usize,
    pub offset_in_member: u64,
    /// The length of the unread zeros before it.
    pub hole_bytes: u64,
    pub bytes: Vec<u8>,
    pub scan: SegmentScan,
    pub hash: MemberSegment,
    /// The digests of its pieces, by their numbers, if they are kept.
    pub pieces: Vec<(u64, [u8; HASH_BYTES])>,
    /// What its parts were in an earlier generation, besides what the member says.
    pub earlier: Vec<EarlierPart>,
}

/// A part of a segment that was in an earlier generation, probably with other bytes: a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierPart {
    /// Where in the segment it begins.
    pub position: u32,
    /// Its earlier content, from there on.
    pub content: Range<u64>,
}

#[derive(Default)]
pub(crate) struct OpenEpoch {
    slots: Vec<Option<ReadSegment>>,
    planned_bytes: u64,
    holes: u64,
    /// How many slots have no segment yet.
    missing: usize,
}

impl OpenEpoch {
    /// Reserves a slot for the next segment. Returns its number.
    pub(crate) fn plan(&mut self, plan: &SegmentPlan) -> usize {
        self.slots.push(None);
        self.planned_bytes += plan.length_bytes as u64;
        self.holes += u64::from(plan.hole_bytes > 0);
        self.missing += 1;
        self.slots.len() - 1
    }

    /// The last planned segment turned out to be `bytes` shorter.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.planned_bytes -= bytes as u64;
    }

    pub(crate) fn put(&mut self, slot: usize, segment: ReadSegment) {
        if let Some(empty) = self.slots.get_mut(slot) {
            *empty = Some(segment);
            self.missing -= 1;
        }
    }

    /// Whether this epoch, full with `epoch_bytes`, gets no further segment.
    pub(crate) fn is_full(&self, epoch_bytes: u64) -> bool {
        let counted_bytes = self.planned_bytes + self.holes * HOLE_COUNTS_BYTES;
        counted_bytes >= epoch_bytes || self.slots.len() >= EPOCH_SEGMENTS_MAX
    }

    /// Whether every planned segment was read.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    pub(crate) fn planned_bytes(&self) -> u64 {
        self.planned_bytes
    }

    /// The segments that belong to the content, in order.
    pub(crate) fn into_segments(self) -> impl Iterator<Item = ReadSegment> {
        self.slots
            .into_iter()
            .flatten()
            .filter(|segment| !segment.bytes.is_empty())
    }
}

/// An epoch with all segments in memory.
pub(crate) struct EpochData {
    pub segments: Vec<ReadSegment>,
    starts: Vec<u32>,
    length: u32,
}

/// A piece of content and its offset in its member.
pub(crate) struct MemberPiece<'a> {
    pub member: u32,
    pub offset_in_member: u64,
    pub bytes: &'a [u8],
}

impl EpochData {
    pub(crate) fn new(segments: Vec<ReadSegment>) -> EpochData {
        let mut length = 0;
        let starts = segments
            .iter()
            .map(|segment| {
                let start = length;
                length += segment.bytes.len() as u32;
                start
            })
            .collect();
        EpochData {
            segments,
            starts,
            length,
        }
    }

    pub(crate) fn length_bytes(&self) -> u64 {
        u64::from(self.length)
    }

    /// Lends the epoch in the form used by the match stage.
    pub(crate) fn with<R>(&self, body: impl FnOnce(&Epoch<'_>) -> R) -> R {
        let segments: Vec<_> = self
            .segments
            .iter()
            .zip(&self.starts)
            .map(|(segment, &start)| EpochSegment {
                start,
                bytes: &segment.bytes,
                scan: &segment.scan,
            })
            .collect();
        body(&Epoch::new(&segments))
    }

    /// Ranges of segments with about 1 MiB of content each: a task for one worker.
    pub(crate) fn batches(&self) -> Vec<Range<usize>> {
        const BATCH_BYTES: usize = 1 << 20;
        let mut batches = vec![];
        let (mut first, mut bytes) = (0, 0);
        for (number, segment) in self.segments.iter().enumerate() {
            bytes += segment.bytes.len();
            if bytes >= BATCH_BYTES {
                batches.push(first..number + 1);
                (first, bytes) = (number + 1, 0);
            }
        }
        if first < self.segments.len() {
            batches.push(first..self.segments.len());
        }
        batches
    }

    /// The content `range` of the epoch, segment by segment.
    pub(crate) fn pieces(&self, range: Range<u32>) -> impl Iterator<Item = MemberPiece<'_>> {
        let first = self
            .starts
            .partition_point(|&start| start <= range.start)
            .saturating_sub(1);
        let segments = self.segments[first..].iter().zip(&self.starts[first..]);
        segments
            .take_while(move |&(_, &start)| start < range.end)
            .map(move |(segment, &start)| {
                let from = range.start.saturating_sub(start) as usize;
                let to = ((range.end - start) as usize).min(segment.bytes.len());
                MemberPiece {
                    member: segment.member as u32,
                    offset_in_member: segment.offset_in_member + from as u64,
                    bytes: &segment.bytes[from..to],
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(member: usize, offset_in_member: u64, bytes: &[u8]) -> ReadSegment {
        let hash = HashKind::Plain.segment(0, bytes).expect("short");
        ReadSegment {
            member,
            offset_in_member,
            hole_bytes: 0,
            bytes: bytes.to_vec(),
            scan: SegmentScan::default(),
            hash,
            pieces: vec![],
            earlier: vec![],
        }
    }

    #[test]
    fn pieces_name_their_members_and_offsets() {
        let data = EpochData::new(vec![
            segment(0, 100, b"abc"),
            segment(1, 0, b"de"),
            segment(2, 0, b"fghi"),
        ]);
        assert_eq!(data.length_bytes(), 9);
        let pieces: Vec<_> = data
            .pieces(2..7)
            .map(|piece| (piece.member, piece.offset_in_member, piece.bytes.to_vec()))
            .collect();
        assert_eq!(
            pieces,
            [
                (0, 102, b"c".to_vec()),
                (1, 0, b"de".to_vec()),
                (2, 0, b"fg".to_vec())
            ]
        );
        assert!(data.batches().into_iter().eq(std::iter::once(0..3)));
    }

    #[test]
    fn an_epoch_is_complete_when_every_slot_is_filled() {
        let mut open = OpenEpoch::default();
        let plan = |length_bytes| SegmentPlan {
            member: 0,
            offset_in_member: 0,
            length_bytes,
            hole_bytes: 0,
            hash: HashKind::Plain,
        };
        let (a, b) = (open.plan(&plan(3)), open.plan(&plan(10)));
        assert!(open.is_full(13) && !open.is_full(14));
        open.put(b, segment(0, 3, b""));
        assert!(!open.is_complete());
        open.shrink(10);
        open.put(a, segment(0, 0, b"abc"));
        assert!(open.is_complete() && !open.is_full(14));
        assert_eq!(open.planned_bytes(), 3);
        assert_eq!(open.into_segments().count(), 1);
    }
}
