//! The intake: it plans which segment of which member is read next.
//!
//! A segment never crosses a member's border and starts at a multiple of [`SEGMENT_BYTES`] of its
//! member, so that segments are subtrees of the member's BLAKE3 hash. The segments of a member do
//! not depend on whether it is a file or a stream.

use std::io::Read;
use std::sync::Arc;

use refrain_pool::{Lane, Lock};
use refrain_protect::SEGMENT_BYTES;
use refrain_storage::Source;

use crate::error::Result;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::feed::{ContentFeed, FeedJob, FeedStep};
use crate::write::pipeline::segments::SegmentPlan;

/// Where a segment's bytes are read.
#[derive(Clone)]
pub(crate) enum SegmentFeed {
    /// Readable at any offset, and again later.
    Source(Arc<dyn Source>),
    /// Readable once, from front to back.
    Stream(Arc<Lock<Box<dyn Read + Send>>>),
}

/// Where a member's bytes come from.
pub(crate) enum MemberFeed {
    /// Its segments are read one by one.
    Segments(SegmentFeed),
    /// Its content is assembled first.
    Content(Box<dyn ContentFeed>),
}

/// A member to be read.
pub(crate) struct IntakeMember {
    pub feed: MemberFeed,
    /// The number of bytes to read from a source: its size when the run began. Unused for streams.
    pub size_bytes: u64,
}

/// Plans segments in the order of the members. A stream is planned one segment at a time, because
/// its end is known only when it is read.
pub(crate) struct Intake {
    members: Vec<IntakeMember>,
    member: usize,
    offset: u64,
    stream_is_busy: bool,
    /// The member and offset that the next segment of content must have, unless it begins a later
    /// member.
    expected: (usize, u64),
}

/// What [`Intake::next`] returns.
pub(crate) enum NextSegment {
    /// The segment to read.
    Segment(SegmentPlan, SegmentFeed),
    /// A segment whose bytes are there.
    Filled(SegmentPlan, Vec<u8>),
    /// A job of a member's feed.
    Job(Lane, FeedJob),
    /// Nothing can be planned until something in flight is done.
    Wait,
    /// All members were planned.
    Done,
}

impl Intake {
    pub(crate) fn new(members: Vec<IntakeMember>) -> Intake {
        Intake {
            members,
            member: 0,
            offset: 0,
            stream_is_busy: false,
            expected: (0, 0),
        }
    }

    /// The next step. `room_bytes` more bytes of content may be read.
    ///
    /// # Errors
    /// Those of a member's feed.
    pub(crate) fn next(
        &mut self,
        room_bytes: u64,
        context: &PipelineContext,
    ) -> Result<NextSegment> {
        if self.stream_is_busy {
            return Ok(NextSegment::Wait);
        }
        while let Some(member) = self.members.get_mut(self.member) {
            let size_bytes = member.size_bytes;
            let next = match &mut member.feed {
                MemberFeed::Segments(_) if room_bytes == 0 => return Ok(NextSegment::Wait),
                MemberFeed::Segments(feed) => {
                    let feed = feed.clone();
                    self.next_segment(feed, size_bytes)
                }
                MemberFeed::Content(feed) => {
                    let step = feed.next(room_bytes, context)?;
                    self.fed(step)
                }
            };
            match next {
                Some(next) => return Ok(next),
                None => self.skip_rest(self.member),
            }
        }
        Ok(NextSegment::Done)
    }

    /// Plans the next segment of the member; `None` at its end.
    fn next_segment(&mut self, feed: SegmentFeed, size_bytes: u64) -> Option<NextSegment> {
        let length_bytes = match feed {
            SegmentFeed::Stream(_) => SEGMENT_BYTES,
            SegmentFeed::Source(_) => (size_bytes - self.offset).min(SEGMENT_BYTES as u64) as usize,
        };
        if length_bytes == 0 {
            return None;
        }
        let plan = SegmentPlan {
            member: self.member,
            offset_in_member: self.offset,
            length_bytes,
        };
        self.offset += length_bytes as u64;
        self.stream_is_busy = matches!(feed, SegmentFeed::Stream(_));
        Some(NextSegment::Segment(plan, feed))
    }

    /// What the member's feed does next; `None` at its end.
    fn fed(&mut self, step: FeedStep) -> Option<NextSegment> {
        match step {
            FeedStep::Segment {
                offset_in_member,
                bytes,
            } => {
                let plan = SegmentPlan {
                    member: self.member,
                    offset_in_member,
                    length_bytes: bytes.len(),
                };
                Some(NextSegment::Filled(plan, bytes))
            }
            FeedStep::Job(lane, job) => Some(NextSegment::Job(lane, job)),
            FeedStep::Wait => Some(NextSegment::Wait),
            FeedStep::Done => None,
        }
    }

    /// A stream returned `length_bytes` for its last plan; fewer than planned mean that it ended.
    pub(crate) fn stream_read(&mut self, length_bytes: usize) {
        self.stream_is_busy = false;
        if length_bytes < SEGMENT_BYTES {
            self.skip_rest(self.member);
        }
    }

    /// Whether a segment belongs to the content. Segments are planned by the size that a member
    /// had, and the member may become shorter while it is read. Must be called in the order of
    /// content.
    pub(crate) fn accept(
        &mut self,
        member: usize,
        offset_in_member: u64,
        length_bytes: usize,
    ) -> bool {
        let (expected_member, expected_offset) = self.expected;
        let follows = member > expected_member && offset_in_member == 0;
        let continues = member == expected_member && offset_in_member == expected_offset;
        if follows || continues {
            self.expected = (member, offset_in_member + length_bytes as u64);
        }
        follows || continues
    }

    /// Plans nothing more of this member: it ended.
    pub(crate) fn skip_rest(&mut self, member: usize) {
        if self.member == member {
            self.member += 1;
            self.offset = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::pipeline::context::tests::test_context;
    use refrain_storage::MemorySource;

    fn file(size: usize) -> IntakeMember {
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(vec![0u8; size]));
        IntakeMember {
            feed: MemberFeed::Segments(SegmentFeed::Source(source)),
            size_bytes: size as u64,
        }
    }

    fn stream() -> IntakeMember {
        let stream: Box<dyn Read + Send> = Box::new(std::io::empty());
        IntakeMember {
            feed: MemberFeed::Segments(SegmentFeed::Stream(Arc::new(Lock::new(stream)))),
            size_bytes: 0,
        }
    }

    fn next(intake: &mut Intake) -> NextSegment {
        intake.next(1, &test_context()).unwrap()
    }

    fn plan(intake: &mut Intake) -> Option<(usize, u64, usize)> {
        match next(intake) {
            NextSegment::Segment(plan, _) => {
                Some((plan.member, plan.offset_in_member, plan.length_bytes))
            }
            _ => None,
        }
    }

    #[test]
    fn segments_begin_at_multiples_of_their_length() {
        let mut intake = Intake::new(vec![file(SEGMENT_BYTES + 5), file(0), file(3)]);
        assert_eq!(plan(&mut intake), Some((0, 0, SEGMENT_BYTES)));
        assert_eq!(plan(&mut intake), Some((0, SEGMENT_BYTES as u64, 5)));
        assert_eq!(plan(&mut intake), Some((2, 0, 3)));
        assert!(matches!(next(&mut intake), NextSegment::Done));
    }

    #[test]
    fn streams_are_planned_one_segment_at_a_time() {
        let mut intake = Intake::new(vec![stream(), file(1)]);
        assert_eq!(plan(&mut intake), Some((0, 0, SEGMENT_BYTES)));
        assert!(matches!(next(&mut intake), NextSegment::Wait));
        intake.stream_read(SEGMENT_BYTES);
        assert_eq!(
            plan(&mut intake),
            Some((0, SEGMENT_BYTES as u64, SEGMENT_BYTES))
        );
        intake.stream_read(0);
        assert_eq!(plan(&mut intake), Some((1, 0, 1)));
    }
}
