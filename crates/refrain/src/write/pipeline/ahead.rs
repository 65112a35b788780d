//! A member read before its turn: its segments wait.

use std::collections::VecDeque;

use crate::error::Result;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::feed::{ContentFeed, FedSegment, FeedStep};

/// The minimum memory for a member read before its turn, in bytes: its reader, and some segments.
/// With less for each, later members are not begun.
pub(crate) const MEMBER_BYTES_MIN: u64 = 4 << 20;

/// The memory of a feed that was begun, besides what it has read, in bytes: its reader's buffer,
/// and the last segment, which may be almost empty.
const FEED_BYTES: u64 = (1 << 20) + (512 << 10);

/// What was read of a member before its turn.
#[derive(Default)]
pub(crate) struct Ahead {
    segments: VecDeque<FedSegment>,
    held_bytes: u64,
    /// What its feed has read, even when the feed is gone.
    read_bytes: u64,
    /// Whether its turn has come, so that only its segments still wait.
    pub is_in_turn: bool,
}

impl Ahead {
    pub(crate) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// The memory of everything read before its turn.
    ///
    /// The whole stream counts, not only its content: entries are in memory too. Once its turn has
    /// come, entries have other memory.
    pub(crate) fn taken_bytes(&self) -> u64 {
        if self.is_in_turn {
            self.held_bytes
        } else {
            self.read_bytes.max(self.held_bytes)
        }
    }

    /// The next segment.
    pub(crate) fn take_segment(&mut self) -> Option<FedSegment> {
        let segment = self.segments.pop_front()?;
        self.held_bytes -= segment.bytes.capacity() as u64;
        Some(segment)
    }

    /// Continues reading, while the member takes no more than `bytes_max`. Returns a job to run,
    /// `Wait` or `Done`; keeps the segments.
    pub(crate) fn read(
        &mut self,
        feed: &mut dyn ContentFeed,
        bytes_max: u64,
        context: &PipelineContext,
    ) -> Result<FeedStep> {
        loop {
            self.read_bytes = feed.read_bytes();
            let taken_bytes = self.taken_bytes() + FEED_BYTES;
            let room_bytes =
                if taken_bytes + feed.next_read_bytes_max() <= bytes_max { u64::MAX } else { 0 };
            match feed.next(room_bytes, context)? {
                FeedStep::Segment(segment) => {
                    self.held_bytes += segment.bytes.capacity() as u64;
                    self.segments.push_back(segment);
                }
                step => return Ok(step),
            }
        }
    }
}
