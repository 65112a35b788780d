//! The content to decode, divided into parts: each at most one segment of a member. Long zeros of a
//! sparse member are one part, because nobody hashes them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain_protect::{HashKind, SEGMENT_BYTES, SPARSE_PIECE_BYTES};

use crate::read::epoch_map::EpochMap;

/// The longest zeros in a part, in bytes: they may go to a pipe, and the user may want to stop.
const ZEROS_BYTES_MAX: u64 = 1 << 30;

const PIECE_BYTES: u64 = SPARSE_PIECE_BYTES as u64;

/// A content range to decode: a segment of a member, or a part of one, or zeros.
pub(super) struct PartPlan {
    pub part: u64,
    pub map: Arc<EpochMap>,
    pub content: Range<u64>,
    /// Its offset in its member, and how that is hashed, if it is a whole segment.
    pub segment_at: Option<(HashKind, u64)>,
    /// Whether it is whole pieces of zeros of a sparse member.
    pub is_zeros: bool,
    /// Jobs with lower numbers decode the blocks that it needs.
    pub after_decoding: u64,
    /// The decoded size of all blocks before its extents.
    pub blocks_bytes: u64,
}

struct UndividedEpoch {
    map: Arc<EpochMap>,
    content: Range<u64>,
    /// See [`PartPlan`].
    after_decoding: u64,
    blocks_bytes: u64,
}

/// The parts not yet being decoded, in content order. Only the next ones exist: an epoch may have
/// 2^50 bytes.
pub(super) struct PartPlans {
    next: VecDeque<PartPlan>,
    parts_max: u64,
    undivided: VecDeque<UndividedEpoch>,
    /// The memory of the maps of both.
    maps_bytes: u64,
    /// The number of parts so far.
    parts: u64,
    /// The content offsets at which members start, beginning with the one being divided, and how
    /// they are hashed.
    begun: VecDeque<(u64, HashKind)>,
}

impl PartPlans {
    /// Divides up to `parts_max` parts ahead.
    pub(super) fn new(parts_max: u64) -> PartPlans {
        PartPlans {
            next: VecDeque::new(),
            parts_max,
            undivided: VecDeque::new(),
            maps_bytes: 0,
            parts: 0,
            begun: VecDeque::new(),
        }
    }

    /// Whether fewer parts exist than may be divided ahead.
    pub(super) fn has_room(&self) -> bool {
        (self.next.len() as u64) < self.parts_max
    }

    pub(super) fn front(&self) -> Option<&PartPlan> {
        self.next.front()
    }

    /// The number of parts, if all were taken.
    pub(super) fn parts_if_empty(&self) -> Option<u64> {
        (self.next.is_empty() && self.undivided.is_empty()).then_some(self.parts)
    }

    pub(super) fn maps_bytes(&self) -> u64 {
        self.maps_bytes
    }

    /// A member starts at this content offset. None of its content was added before.
    pub(super) fn member_starts(&mut self, content_start: u64, hash: HashKind) {
        self.begun.push_back((content_start, hash));
    }

    /// Adds the content of an epoch. For the numbers see [`PartPlan`].
    pub(super) fn add_epoch(&mut self, map: Arc<EpochMap>, after_decoding: u64, blocks_bytes: u64) {
        let content = map.content();
        if content.is_empty() {
            return;
        }
        self.maps_bytes += map.memory_bytes() as u64;
        self.undivided.push_back(UndividedEpoch {
            map,
            content,
            after_decoding,
            blocks_bytes,
        });
        self.divide();
    }

    /// Takes the next part if it needs no job with this number or higher.
    pub(super) fn pop_if_after(&mut self, first_decoding: u64) -> Option<PartPlan> {
        let is_ready = |plan: &mut PartPlan| plan.after_decoding <= first_decoding;
        let plan = self.next.pop_front_if(is_ready)?;
        self.divide();
        let next = self.next.front();
        if next.is_none_or(|next| !Arc::ptr_eq(&next.map, &plan.map)) {
            self.maps_bytes -= plan.map.memory_bytes() as u64;
        }
        Some(plan)
    }

    fn divide(&mut self) {
        while self.has_room()
            && let Some(mut epoch) = self.undivided.pop_front()
        {
            let part = self.next_part_of(&mut epoch);
            self.next.push_back(part);
            if !epoch.content.is_empty() {
                self.undivided.push_front(epoch);
            }
        }
    }

    /// Takes the next part of an epoch, inside one segment of its member, or zeros.
    fn next_part_of(&mut self, epoch: &mut UndividedEpoch) -> PartPlan {
        let at = epoch.content.start;
        // The member of `at` is the last one that starts at or before it.
        while self.begun.get(1).is_some_and(|&(next, _)| next <= at) {
            self.begun.pop_front();
        }
        let (member_start, hash) = self.begun.front().copied().unwrap_or_default();
        let member_end = self.begun.get(1).map_or(u64::MAX, |&(next, _)| next);
        let offset_in_member = at - member_start;
        let part_end = member_end.min(epoch.content.end);
        let cut = match hash {
            HashKind::Plain => segment_from(offset_in_member, part_end - at),
            HashKind::Sparse => sparse_part(&epoch.map, at..part_end, offset_in_member),
        };
        let end = at + cut.length_bytes;
        let is_whole = cut.is_whole || (cut.begins_whole && end == member_end);
        epoch.content.start = end;
        self.parts += 1;
        PartPlan {
            part: self.parts - 1,
            map: epoch.map.clone(),
            content: at..end,
            segment_at: (is_whole && !cut.is_zeros).then_some((hash, offset_in_member)),
            is_zeros: cut.is_zeros,
            after_decoding: epoch.after_decoding,
            blocks_bytes: epoch.blocks_bytes,
        }
    }
}

/// What is cut off the beginning of an epoch.
struct Cut {
    length_bytes: u64,
    /// Whether it starts at the start of a unit of hashing.
    begins_whole: bool,
    /// Whether it also ends at the end of one.
    is_whole: bool,
    is_zeros: bool,
}

/// The rest of the segment, at most `left_bytes`.
fn segment_from(offset_in_member: u64, left_bytes: u64) -> Cut {
    let inside = offset_in_member % SEGMENT_BYTES as u64;
    let segment_left = SEGMENT_BYTES as u64 - inside;
    Cut {
        length_bytes: segment_left.min(left_bytes),
        begins_whole: inside == 0,
        is_whole: inside == 0 && segment_left <= left_bytes,
        is_zeros: false,
    }
}

/// The zeros at the start of `range` of a sparse member, or the rest of its segment without whole
/// pieces of zeros at the end.
fn sparse_part(map: &EpochMap, range: Range<u64>, offset_in_member: u64) -> Cut {
    let is_aligned = |at: u64| (offset_in_member + at).is_multiple_of(PIECE_BYTES);
    let zeros = map.zeros_from(range.clone());
    let whole = zeros.min(ZEROS_BYTES_MAX) / PIECE_BYTES * PIECE_BYTES;
    if is_aligned(0) && whole > 0 {
        return Cut {
            length_bytes: whole,
            begins_whole: true,
            is_whole: true,
            is_zeros: true,
        };
    }
    let segment = segment_from(offset_in_member, range.end - range.start).length_bytes;
    let mut length_bytes = segment;
    let mut at = 0;
    for (_, length) in map.origins(range.start..range.start + segment) {
        // Up to the next piece, where zeros that form a separate part may start.
        let next = (offset_in_member + at).next_multiple_of(PIECE_BYTES) - offset_in_member;
        let zeros = map.zeros_from(range.start + at..range.end);
        if at + zeros >= next + PIECE_BYTES && next > 0 && next < segment {
            length_bytes = next;
            break;
        }
        at += length;
    }
    Cut {
        length_bytes,
        begins_whole: is_aligned(0),
        is_whole: is_aligned(0) && is_aligned(length_bytes),
        is_zeros: false,
    }
}

#[cfg(test)]
mod tests {
    use refrain_format::Pattern;

    use super::*;

    const SEGMENT: u64 = SEGMENT_BYTES as u64;

    fn map(content: Range<u64>) -> Arc<EpochMap> {
        let mut map = EpochMap::empty(content.start);
        map.append(0, content.end - content.start);
        Arc::new(map)
    }

    #[test]
    fn parts_end_at_segments_members_and_epochs() {
        let mut plans = PartPlans::new(2);
        plans.member_starts(0, HashKind::Plain);
        plans.member_starts(SEGMENT + 10, HashKind::Plain);
        plans.add_epoch(map(0..2 * SEGMENT), 0, 0);
        plans.add_epoch(map(2 * SEGMENT..2 * SEGMENT), 0, 0);
        plans.add_epoch(map(2 * SEGMENT..2 * SEGMENT + 7), 3, 0);
        assert!(!plans.has_room());
        let mut parts = vec![];
        while let Some(plan) = plans.pop_if_after(2) {
            parts.push((plan.part, plan.content, plan.segment_at));
        }
        let expected = [
            (0, 0..SEGMENT, Some((HashKind::Plain, 0))),
            (1, SEGMENT..SEGMENT + 10, Some((HashKind::Plain, SEGMENT))),
            (2, SEGMENT + 10..2 * SEGMENT, None),
        ];
        assert_eq!(parts, expected);
        assert_eq!(plans.parts_if_empty(), None);
        assert_eq!(plans.maps_bytes(), 12);
        let last = plans.pop_if_after(3).expect("its block is decoded");
        assert_eq!(last.content, 2 * SEGMENT..2 * SEGMENT + 7);
        assert_eq!((plans.parts_if_empty(), plans.maps_bytes()), (Some(4), 0));
    }

    #[test]
    fn of_a_long_epoch_few_parts_exist() {
        let mut plans = PartPlans::new(5);
        plans.member_starts(0, HashKind::Plain);
        plans.add_epoch(map(0..1 << 50), 0, 0);
        for part in 0..100 {
            assert_eq!(plans.next.len(), 5);
            let plan = plans.pop_if_after(0).expect("the next part");
            assert_eq!(plan.content, part * SEGMENT..(part + 1) * SEGMENT);
            assert_eq!(plans.maps_bytes(), plan.map.memory_bytes() as u64);
        }
    }

    #[test]
    fn zeros_of_a_sparse_member_are_parts_of_their_own() {
        const PIECE: u64 = PIECE_BYTES;
        // Data, zeros that start and end inside pieces, data up to the member's end.
        let lengths = [
            (false, 5),
            (true, SEGMENT + 7 * PIECE),
            (false, 2 * SEGMENT),
            (true, 3 << 30),
            (false, 9),
        ];
        let mut map = EpochMap::empty(100);
        for (is_zeros, length) in lengths {
            if is_zeros {
                map.append_fill(&Pattern::new(&[0]).unwrap(), 0, length)
            } else {
                map.append(0, length)
            }
        }
        let content = map.content();
        let mut plans = PartPlans::new(3);
        plans.member_starts(100, HashKind::Sparse);
        plans.member_starts(content.end, HashKind::Plain);
        plans.add_epoch(Arc::new(map), 0, 0);
        let (mut at, mut zeros) = (100, vec![]);
        while let Some(plan) = plans.pop_if_after(0) {
            assert_eq!(plan.content.start, at);
            at = plan.content.end;
            let offset = plan.content.start - 100;
            let length = at - plan.content.start;
            if plan.is_zeros {
                zeros.push((offset, length));
                assert_eq!((offset % PIECE, length % PIECE), (0, 0));
            } else {
                // Every part is whole, since the epoch has the whole member.
                assert_eq!(plan.segment_at, Some((HashKind::Sparse, offset)));
                assert!(length <= SEGMENT && offset / SEGMENT == (at - 101) / SEGMENT);
            }
        }
        assert_eq!(at, content.end);
        let data_end = 3 * SEGMENT + 7 * PIECE + 5;
        let long = data_end.next_multiple_of(PIECE);
        let rest = (data_end + (3 << 30)) / PIECE * PIECE - long;
        let expected = [
            (PIECE, SEGMENT + 6 * PIECE),
            (long, 1 << 30),
            (long + (1 << 30), 1 << 30),
            (long + (2 << 30), rest - (2 << 30)),
        ];
        assert_eq!(zeros, expected);
    }
}
