//! Decides for all verbs what of an archive is damaged or missing, from the frames found by a scan.

use std::ops::Range;

use refrain_format::{FrameKind, MAGIC, TAIL_BYTES};

use crate::damage::{DamagedPart, DamagedPlace};

/// A frame with an intact header.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenFrame {
    pub offset: u64,
    pub frame_bytes: u64,
    pub kind: FrameKind,
    pub sequence: u64,
    /// The number of the block, if it is one.
    pub block_id: Option<u64>,
    /// Whether its payload is damaged.
    pub is_damaged: bool,
    /// Whether its payload was damaged and repaired.
    pub is_mended: bool,
}

impl SeenFrame {
    /// Its bytes, according to its header.
    pub(super) fn bytes(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.frame_bytes)
    }
}

/// What surrounds the frames of an archive.
pub(super) struct Surroundings {
    /// The bytes of the archive, with its magic and tail.
    pub bytes: Range<u64>,
    /// Whether the file ends with it.
    pub is_last: bool,
    /// Whether its magic is intact.
    pub begins_right: bool,
    /// The tail after the last frame, if there is one.
    pub tail: Option<u64>,
    /// Whether its bytes end with a tail.
    pub has_tail_at_end: bool,
}

/// The damaged and missing parts, in file order. Empty if nothing is missing.
pub(super) fn lost_places(seen: &[SeenFrame], around: &Surroundings) -> Vec<DamagedPlace> {
    let magic_end = around.bytes.start + MAGIC.len() as u64;
    let mut lost = Lost::default();
    if !around.begins_right {
        let magic = around.bytes.start..magic_end.min(around.bytes.end);
        lost.add(DamagedPart::Settings, magic);
    }
    lost.at = magic_end;
    for (number, frame) in seen.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| seen.get(before));
        let is_tail = frame.bytes().start == lost.at + TAIL_BYTES as u64;
        if before.is_some_and(|before| ends_with_tail(before.kind))
            && (frame.kind == FrameKind::Generation || is_appendix(frame.kind))
            && (is_tail || frame.kind == FrameKind::Generation)
        {
            // The tail of the generation before, or of an appendix of it.
            lost.at += TAIL_BYTES as u64;
        }
        lost.gap_before(frame);
        if frame.is_damaged || frame.is_mended {
            lost.add(part_of(frame), frame.bytes());
        }
        // After a frame with a damaged payload, the next may start anywhere after its header.
        lost.at = lost.at.max(frame.bytes().end);
    }
    let mut intact = seen.iter().rev().filter(|seen| !seen.is_damaged);
    // A Whole frame is the only one.
    let is_end = |last: &SeenFrame| matches!(last.kind, FrameKind::End | FrameKind::Whole);
    let last = intact.clone().next();
    if last.is_some_and(|last| is_appendix(last.kind))
        && intact
            .find(|seen| !is_appendix(seen.kind))
            .is_some_and(is_end)
    {
        if !around.has_tail_at_end {
            lost.add(
                DamagedPart::End,
                lost.at.min(around.bytes.end)..around.bytes.end,
            );
        }
        return lost.places;
    }
    let has_end = last.is_some_and(is_end);
    let tail_end = lost.at + TAIL_BYTES as u64;
    match last {
        Some(last) if has_end => {
            let is_right = around.tail == Some(last.frame_bytes);
            if !is_right && around.is_last && around.bytes.end < tail_end {
                lost.add(DamagedPart::CutOff, last.bytes().start..around.bytes.end);
            } else if !is_right {
                lost.add(DamagedPart::End, lost.at..around.bytes.end);
            } else if tail_end < around.bytes.end && !around.has_tail_at_end {
                lost.add(DamagedPart::Frames(0), tail_end..around.bytes.end);
            }
        }
        _ => lost.add_end(seen, around),
    }
    lost.places
}

/// Whether a tail may follow such a frame.
fn ends_with_tail(kind: FrameKind) -> bool {
    kind == FrameKind::End || is_appendix(kind)
}

/// Whether such frames follow the end of a generation.
pub(super) fn is_appendix(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Signature | FrameKind::Recovery)
}

/// What a damaged frame contained.
fn part_of(frame: &SeenFrame) -> DamagedPart {
    match (frame.kind, frame.block_id) {
        (FrameKind::Archive, _) => DamagedPart::Settings,
        (FrameKind::Block, Some(block)) => DamagedPart::Block(block),
        (FrameKind::Extents, _) => DamagedPart::Extents,
        (FrameKind::Entries, _) => DamagedPart::Entries,
        (FrameKind::MemberStart | FrameKind::MemberEnd, _) => DamagedPart::Member,
        (FrameKind::Index, _) => DamagedPart::Index,
        (FrameKind::End, _) => DamagedPart::End,
        (FrameKind::Whole, _) => DamagedPart::Whole,
        (_, _) => DamagedPart::Frames(1),
    }
}

#[derive(Default)]
struct Lost {
    places: Vec<DamagedPlace>,
    /// Where the next frame starts if nothing is missing, and its number.
    at: u64,
    next_sequence: u64,
    next_block: u64,
    /// The index of the latest place that represents frames of unknown kinds, since the latest
    /// block.
    unknown: Option<usize>,
}

impl Lost {
    fn add(&mut self, part: DamagedPart, bytes: Range<u64>) {
        self.places.push(DamagedPlace { part, bytes });
    }

    /// Adds what is missing before a frame.
    fn gap_before(&mut self, frame: &SeenFrame) {
        let frames = frame.sequence.saturating_sub(self.next_sequence);
        // A damaged frame before it may have had another length than stated.
        let bytes = self.at.min(frame.offset)..frame.offset;
        if frames > 0 || !bytes.is_empty() {
            let part = match (self.next_sequence, frames) {
                (0, 1) => DamagedPart::Settings,
                (_, frames) => DamagedPart::Frames(frames),
            };
            self.add(part, bytes);
            self.unknown = Some(self.places.len() - 1);
        }
        if let Some(block) = frame.block_id {
            self.name_block(block);
        }
        self.next_sequence = self.next_sequence.max(frame.sequence.saturating_add(1));
    }

    /// A single missing frame was a block, if a block is missing.
    fn name_block(&mut self, block: u64) {
        let place = self.unknown.take().and_then(|at| self.places.get_mut(at));
        if let Some(place) = place
            && place.part == DamagedPart::Frames(1)
            && block == self.next_block.saturating_add(1)
        {
            place.part = DamagedPart::Block(self.next_block);
        }
        self.next_block = self.next_block.max(block.saturating_add(1));
    }

    /// Adds what is missing of an archive without its last frame.
    fn add_end(&mut self, seen: &[SeenFrame], around: &Surroundings) {
        let end = around.bytes.end;
        let start = self.at.min(end);
        let last = seen.last();
        let reaches_beyond = last.is_some_and(|last| last.is_damaged && last.bytes().end > end);
        // A part of a header remains, or nothing.
        let is_short = end.saturating_sub(start) < refrain_format::FRAME_HEADER_BYTES as u64;
        let is_cut = around.is_last && !around.has_tail_at_end && (reaches_beyond || is_short);
        let damaged_end = last.filter(|last| last.is_damaged && last.kind == FrameKind::End);
        if is_cut {
            if reaches_beyond {
                self.places.pop();
            }
            let start = last
                .filter(|_| reaches_beyond)
                .map_or(start, |last| last.offset);
            self.add(DamagedPart::CutOff, start..end);
        } else if damaged_end.is_none() {
            self.add(DamagedPart::End, start..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 100 bytes after the magic: Archive, MemberStart, blocks, MemberEnd, End.
    fn frames() -> Vec<SeenFrame> {
        let kinds = [
            FrameKind::Archive,
            FrameKind::MemberStart,
            FrameKind::Block,
            FrameKind::Block,
            FrameKind::Block,
            FrameKind::MemberEnd,
            FrameKind::End,
        ];
        let frame = |(sequence, kind): (u64, FrameKind)| SeenFrame {
            offset: 8 + 100 * sequence,
            frame_bytes: 100,
            kind,
            sequence,
            block_id: (kind == FrameKind::Block).then(|| sequence - 2),
            is_damaged: false,
            is_mended: false,
        };
        (0..).zip(kinds).map(frame).collect()
    }

    fn around(end: u64) -> Surroundings {
        Surroundings {
            bytes: 0..end,
            is_last: true,
            begins_right: true,
            tail: (end == 716).then_some(100),
            has_tail_at_end: end == 716,
        }
    }

    fn parts(seen: &[SeenFrame], around: &Surroundings) -> Vec<(DamagedPart, u64, u64)> {
        let lost = lost_places(seen, around);
        lost.iter()
            .map(|place| (place.part, place.bytes.start, place.bytes.end))
            .collect()
    }

    #[test]
    fn every_frame_that_is_lost_leaves_a_place() {
        assert!(parts(&frames(), &around(716)).is_empty());
        for lost in 0..7 {
            let mut seen = frames();
            seen.remove(lost);
            let start = 8 + 100 * lost as u64;
            let part = match lost {
                0 => DamagedPart::Settings,
                2 | 3 => DamagedPart::Block(lost as u64 - 2),
                6 => DamagedPart::End,
                _ => DamagedPart::Frames(1),
            };
            let end = if lost == 6 { 716 } else { start + 100 };
            assert_eq!(parts(&seen, &around(716)), [(part, start, end)], "{lost}");
        }
    }

    #[test]
    fn damaged_frames_are_named_by_their_header() {
        for (lost, part) in [
            (0, DamagedPart::Settings),
            (1, DamagedPart::Member),
            (3, DamagedPart::Block(1)),
            (6, DamagedPart::End),
        ] {
            let mut seen = frames();
            seen[lost].is_damaged = true;
            let start = 8 + 100 * lost as u64;
            assert_eq!(parts(&seen, &around(716)), [(part, start, start + 100)]);
        }
    }

    #[test]
    fn a_cut_archive_says_where() {
        for (end, found, from) in [(508, 5, 508), (520, 5, 508), (708, 7, 608), (712, 7, 608)] {
            let cut = (DamagedPart::CutOff, from, end);
            assert_eq!(parts(&frames()[..found], &around(end)), [cut], "{end}");
        }
        // Inside a payload: the frame is longer than what is left.
        let mut seen = frames()[..5].to_vec();
        seen[4].is_damaged = true;
        assert_eq!(
            parts(&seen, &around(450)),
            [(DamagedPart::CutOff, 408, 450)]
        );
        // Other data in place of the end.
        let seen = &frames()[..5];
        assert_eq!(parts(seen, &around(716)), [(DamagedPart::End, 508, 716)]);
    }

    #[test]
    fn bytes_between_frames_and_a_lost_magic_are_named() {
        let mut seen = frames();
        seen[3..].iter_mut().for_each(|seen| seen.offset += 7);
        let mut shifted = around(723);
        shifted.tail = Some(100);
        shifted.has_tail_at_end = true;
        assert_eq!(parts(&seen, &shifted), [(DamagedPart::Frames(0), 308, 315)]);
        let headless = Surroundings {
            begins_right: false,
            ..around(716)
        };
        assert_eq!(parts(&frames(), &headless), [(DamagedPart::Settings, 0, 8)]);
    }
}
