//! The content that is to be decoded, divided into parts: one segment of a member each, or less.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain_protect::SEGMENT_BYTES;

use crate::read::epoch_map::EpochMap;

/// A content range to decode: one segment of a member, or a part of it.
pub(super) struct PartPlan {
    pub part: u64,
    pub map: Arc<EpochMap>,
    pub content: Range<u64>,
    /// Its offset in its member if it is a whole segment.
    pub segment_at: Option<u64>,
    /// Jobs with lower numbers decode the blocks that it needs.
    pub after_decoding: u64,
    /// The decoded size of all blocks before its extents.
    pub blocks_bytes: u64,
}

/// The content of an epoch that is not divided yet.
struct UndividedEpoch {
    map: Arc<EpochMap>,
    content: Range<u64>,
    /// See [`PartPlan`].
    after_decoding: u64,
    blocks_bytes: u64,
}

/// The parts whose decoding has not begun, in the order of content. Only the next ones exist: an
/// epoch may have 2^50 bytes.
pub(super) struct PartPlans {
    next: VecDeque<PartPlan>,
    parts_max: u64,
    undivided: VecDeque<UndividedEpoch>,
    /// The memory of the maps of both.
    maps_bytes: u64,
    /// The number of parts so far.
    parts: u64,
    /// The content offsets at which members begin, from the one that is being divided.
    begun: VecDeque<u64>,
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

    /// Whether there are fewer parts than may be divided ahead.
    pub(super) fn has_room(&self) -> bool {
        (self.next.len() as u64) < self.parts_max
    }

    /// The next part.
    pub(super) fn front(&self) -> Option<&PartPlan> {
        self.next.front()
    }

    /// The number of parts, if all were taken.
    pub(super) fn parts_if_empty(&self) -> Option<u64> {
        (self.next.is_empty() && self.undivided.is_empty()).then_some(self.parts)
    }

    /// The memory of the maps, in bytes.
    pub(super) fn maps_bytes(&self) -> u64 {
        self.maps_bytes
    }

    /// A member begins at this offset in the content. No content of it was added before.
    pub(super) fn member_starts(&mut self, content_start: u64) {
        self.begun.push_back(content_start);
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

    /// Takes the next part if it needs no job with this number or a higher one.
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

    /// Takes the next part of an epoch, which is inside one segment of its member.
    fn next_part_of(&mut self, epoch: &mut UndividedEpoch) -> PartPlan {
        let at = epoch.content.start;
        // The member that holds `at` is the last one that begins at or before it.
        while self.begun.get(1).is_some_and(|&next| next <= at) {
            self.begun.pop_front();
        }
        let member_start = self.begun.front().copied().unwrap_or(0);
        let member_end = self.begun.get(1).copied().unwrap_or(u64::MAX);
        let offset_in_member = at - member_start;
        let inside_segment = offset_in_member % SEGMENT_BYTES as u64;
        let segment_left = SEGMENT_BYTES as u64 - inside_segment;
        let end = (at + segment_left).min(member_end).min(epoch.content.end);
        let is_whole = inside_segment == 0 && (end - at == segment_left || end == member_end);
        epoch.content.start = end;
        self.parts += 1;
        PartPlan {
            part: self.parts - 1,
            map: epoch.map.clone(),
            content: at..end,
            segment_at: is_whole.then_some(offset_in_member),
            after_decoding: epoch.after_decoding,
            blocks_bytes: epoch.blocks_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
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
        plans.member_starts(0);
        plans.member_starts(SEGMENT + 10);
        plans.add_epoch(map(0..2 * SEGMENT), 0, 0);
        plans.add_epoch(map(2 * SEGMENT..2 * SEGMENT), 0, 0);
        plans.add_epoch(map(2 * SEGMENT..2 * SEGMENT + 7), 3, 0);
        assert!(!plans.has_room());
        let mut parts = vec![];
        while let Some(plan) = plans.pop_if_after(2) {
            parts.push((plan.part, plan.content, plan.segment_at));
        }
        let expected = [
            (0, 0..SEGMENT, Some(0)),
            (1, SEGMENT..SEGMENT + 10, Some(SEGMENT)),
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
        plans.member_starts(0);
        plans.add_epoch(map(0..1 << 50), 0, 0);
        for part in 0..100 {
            assert_eq!(plans.next.len(), 5);
            let plan = plans.pop_if_after(0).expect("the next part");
            assert_eq!(plan.content, part * SEGMENT..(part + 1) * SEGMENT);
            assert_eq!(plans.maps_bytes(), plan.map.memory_bytes() as u64);
        }
    }
}
