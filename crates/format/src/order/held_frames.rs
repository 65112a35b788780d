//! [`HeldFrames`]: puts frames into the order in which a reader from front to back can use them.

use std::collections::VecDeque;

use crate::check::check_limit;
use crate::error::Result;
use crate::frame::FrameHeader;
use crate::limits::Limits;
use crate::payload::Payload;

/// A frame that waits for blocks.
#[derive(Debug, Clone)]
struct Held<T> {
    frame: T,
    /// How many store bytes must have come.
    needs_bytes: u64,
    frame_bytes: u64,
}

/// Holds back frames of extents, members and entries while blocks of an earlier epoch are missing:
/// extents come before the blocks with their fresh bytes.
///
/// An epoch is complete when blocks have supplied every store byte that extents up to it introduce.
/// Frames are fed in file order ([`HeldFrames::feed`]) and taken out ([`HeldFrames::next`]) as soon
/// as every epoch up to them is complete. Blocks and frames of other kinds are never held.
#[derive(Debug, Clone)]
pub struct HeldFrames<T> {
    ready: VecDeque<T>,
    held: VecDeque<Held<T>>,
    held_bytes: u64,
    held_bytes_max: u64,
    introduced_bytes: u64,
    store_bytes: u64,
}

impl<T> HeldFrames<T> {
    /// Creates an empty queue that holds at most [`Limits::held_bytes_max`].
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            ready: VecDeque::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            held_bytes_max: limits.capped().held_bytes_max,
            introduced_bytes: 0,
            store_bytes: 0,
        }
    }

    /// An empty queue behind a store of this size.
    pub(super) fn after(limits: &Limits, store_bytes: u64) -> Self {
        Self {
            introduced_bytes: store_bytes,
            store_bytes,
            ..Self::new(limits)
        }
    }

    /// Adds the next frame in file order. `frame` is what [`HeldFrames::next`] returns for it.
    ///
    /// # Errors
    /// More bytes must be held back than the limits permit.
    pub fn feed(&mut self, header: &FrameHeader, payload: &Payload<'_>, frame: T) -> Result<()> {
        match payload {
            Payload::Block { header: block, .. } => {
                self.store_bytes = block.store_end();
                self.ready.push_back(frame);
                self.release();
                Ok(())
            }
            Payload::Extents { header: epoch, .. } => {
                self.introduced_bytes = epoch.store_end();
                self.hold(header, frame)
            }
            Payload::MemberStart(_) | Payload::MemberEnd(_) | Payload::Entries { .. } => {
                self.hold(header, frame)
            }
            Payload::Archive(_)
            | Payload::Index(_)
            | Payload::End { .. }
            | Payload::Generation(_)
            | Payload::Catalog(_)
            | Payload::Skipped => {
                self.ready.push_back(frame);
                Ok(())
            }
        }
    }

    fn hold(&mut self, header: &FrameHeader, frame: T) -> Result<()> {
        if self.introduced_bytes <= self.store_bytes {
            self.ready.push_back(frame);
            return Ok(());
        }
        let frame_bytes = header.frame_bytes();
        self.held_bytes = self.held_bytes.saturating_add(frame_bytes);
        check_limit(
            "bytes of frames that wait for blocks",
            self.held_bytes,
            self.held_bytes_max,
        )?;
        self.held.push_back(Held {
            frame,
            needs_bytes: self.introduced_bytes,
            frame_bytes,
        });
        Ok(())
    }

    fn release(&mut self) {
        let store_bytes = self.store_bytes;
        let is_complete = |held: &mut Held<T>| held.needs_bytes <= store_bytes;
        while let Some(held) = self.held.pop_front_if(is_complete) {
            self.held_bytes -= held.frame_bytes;
            self.ready.push_back(held.frame);
        }
    }

    /// Makes all frames ready, because no more blocks will come. Their content is only partly
    /// there.
    pub fn release_all(&mut self) {
        self.held_bytes = 0;
        let held = std::mem::take(&mut self.held).into_iter();
        self.ready.extend(held.map(|held| held.frame));
    }

    /// Takes out the next frame that can be used.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<T> {
        self.ready.pop_front()
    }

    /// Returns the bytes of the frames that are held, headers included.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockHeader;
    use crate::coding::Coding;
    use crate::constants::FrameKind;
    use crate::error::FormatError;
    use crate::extents::ExtentsHeader;
    use crate::member::MemberEnd;

    const FRAME: u64 = 100;

    fn header(kind: FrameKind) -> FrameHeader {
        FrameHeader {
            archive_id: 7,
            keep: false,
            kind,
            generation: 0,
            skippable: false,
            payload_bytes: FRAME - crate::constants::FRAME_HEADER_BYTES as u64,
            sequence: 0,
            payload_checksum: 0,
        }
    }

    #[test]
    fn all_frames_come_out_in_their_order_when_no_more_blocks_will_come() {
        let mut queue = HeldFrames::new(&Limits::default());
        let mut feed = |kind, payload: Payload<'_>, name| {
            queue.feed(&header(kind), &payload, name).unwrap();
        };
        feed(FrameKind::Extents, extents(10), "E10");
        feed(FrameKind::MemberEnd, member_end(), "M");
        feed(FrameKind::Block, block(5), "B5");
        queue.release_all();
        let order: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(order, ["B5", "E10", "M"]);
        assert_eq!(queue.held_bytes(), 0);
    }

    /// Feeds frames by their names, `E30` (extents that introduce bytes up to 30), `B30` (a block
    /// up to there), `M` (a member end), and returns what comes out after each.
    fn order(frames: &[&'static str], held_bytes_max: u64) -> Result<Vec<Vec<&'static str>>> {
        let limits = Limits {
            held_bytes_max,
            ..Limits::default()
        };
        let mut queue = HeldFrames::new(&limits);
        let feed = |&frame: &&'static str| {
            let end = frame[1..].parse().unwrap_or(0);
            match frame.as_bytes()[0] {
                b'B' => queue.feed(&header(FrameKind::Block), &block(end), frame)?,
                b'E' => queue.feed(&header(FrameKind::Extents), &extents(end), frame)?,
                _ => queue.feed(&header(FrameKind::MemberEnd), &member_end(), frame)?,
            }
            Ok(std::iter::from_fn(|| queue.next()).collect())
        };
        frames.iter().map(feed).collect()
    }

    fn block(end: u64) -> Payload<'static> {
        let header = BlockHeader {
            block_id: 0,
            store_start: 0,
            raw_bytes: end,
            raw_checksum: None,
            coding: Coding::none(),
        };
        Payload::Block { header, data: &[] }
    }

    fn extents(end: u64) -> Payload<'static> {
        let header = ExtentsHeader {
            epoch_id: 0,
            content_start: 0,
            content_bytes: 1,
            store_start: 0,
            fresh_bytes: end,
            extent_count: 1,
            packed_raw_bytes: 2,
            packed_checksum: 0,
            coding: Coding::none(),
        };
        Payload::Extents { header, data: &[] }
    }

    fn member_end() -> Payload<'static> {
        Payload::MemberEnd(MemberEnd::of_content(0, 0))
    }

    #[test]
    fn frames_wait_for_the_blocks_of_the_epochs_before_them() {
        let none: Vec<&str> = vec![];
        let found = order(&["E30", "M", "B10", "E50", "B30", "B50", "M"], 1000).unwrap();
        let expected = [
            none.clone(),
            none.clone(),
            vec!["B10"],
            none,
            vec!["B30", "E30", "M"],
            vec!["B50", "E50"],
            vec!["M"],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_epoch_without_missing_bytes_is_complete_at_once() {
        let found = order(&["M", "E30", "B30", "E30", "M"], FRAME).unwrap();
        let expected: [Vec<&str>; 5] = [
            vec!["M"],
            vec![],
            vec!["B30", "E30"],
            vec!["E30"],
            vec!["M"],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_held_is_limited() {
        assert!(order(&["E30", "M", "B30", "E40", "M"], 2 * FRAME).is_ok());
        assert!(matches!(
            order(&["E30", "M", "E40"], 2 * FRAME),
            Err(FormatError::OverLimit { value: 300, .. })
        ));
    }
}
