//! The intake: plans which segment of which member is read next.
//!
//! A segment never crosses a member's border and starts at a multiple of [`SEGMENT_BYTES`] of its
//! member, so that segments are subtrees of the member's BLAKE3 hash. The segments of a member are
//! the same whether it is a file or a stream. Segments of a sparse file start at any piece of its
//! hash, and leave holes out.
//!
//! While the member whose turn it is waits, later independent members are read, as far as memory
//! allows. Their segments wait for their turn, so the order of segments does not depend on who was
//! faster.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use refrain_pool::{Lane, Lock};
use refrain_protect::{HashKind, SEGMENT_BYTES};
use refrain_storage::Source;

use crate::error::Result;
use crate::write::pipeline::ahead::{Ahead, MEMBER_BYTES_MIN};
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::feed::{ContentFeed, FedSegment, FeedJob, FeedStep};
use crate::write::pipeline::holes::HoleFinder;
use crate::write::pipeline::segments::{EarlierPart, SegmentPlan};

/// Where a segment's bytes are read.
#[derive(Clone)]
pub(crate) enum SegmentFeed {
    /// Readable at any offset, and again later.
    Source(Arc<dyn Source>),
    /// Readable once, from front to back.
    Stream(SharedStream),
}

/// A stream that is taken out while it is read: a waiting job must not hold a lock.
pub(crate) type SharedStream = Arc<Lock<Option<Box<dyn Read + Send>>>>;

/// Where a member's bytes come from.
pub(crate) enum MemberFeed {
    /// Its segments are read one by one.
    Segments(SegmentFeed),
    /// Its content is assembled first.
    Content(Box<dyn ContentFeed>),
}

/// A member to read.
pub(crate) struct IntakeMember {
    pub feed: MemberFeed,
    /// The number of bytes to read from a source: its size at the start of the run. Unused for
    /// streams.
    pub size_bytes: u64,
    /// Whether it is a source whose holes are left out.
    pub is_sparse: bool,
    /// Whether its content may be read before its turn.
    pub is_independent: bool,
}

impl From<IntakeMember> for MemberState {
    fn from(member: IntakeMember) -> MemberState {
        MemberState {
            ahead: member.is_independent.then(Ahead::default),
            feed: Some(member.feed),
            size_bytes: member.size_bytes,
            holes: (member.is_sparse).then(|| HoleFinder::new(member.size_bytes)),
        }
    }
}

/// A member being read.
struct MemberState {
    /// `None` when nothing more is read from it.
    feed: Option<MemberFeed>,
    size_bytes: u64,
    /// For a sparse source.
    holes: Option<HoleFinder>,
    /// What was read before its turn; `None` if it may not be.
    ahead: Option<Ahead>,
}

/// Plans segments in the order of the members. A stream is planned one segment at a time, because
/// its end is known only when it is read.
pub(crate) struct Intake {
    members: Vec<MemberState>,
    member: usize,
    offset: u64,
    stream_is_busy: bool,
    /// The member and offset that the next segment of content must have, unless it begins a later
    /// member.
    expected: (usize, u64),
}

pub(crate) enum NextSegment {
    /// The segment to read.
    Segment(SegmentPlan, SegmentFeed),
    /// A segment whose bytes are available.
    Filled(SegmentPlan, Vec<u8>, Vec<EarlierPart>),
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
            members: members.into_iter().map(MemberState::from).collect(),
            member: 0,
            offset: 0,
            stream_is_busy: false,
            expected: (0, 0),
        }
    }

    /// The next step. `room_bytes` more bytes of content may be read, and members before their turn
    /// as long as they take no more than `ahead_bytes`.
    ///
    /// # Errors
    /// From a member's feed.
    pub(crate) fn next(
        &mut self,
        room_bytes: u64,
        ahead_bytes: u64,
        context: &PipelineContext,
    ) -> Result<NextSegment> {
        match self.next_in_turn(room_bytes, context)? {
            NextSegment::Wait if ahead_bytes > 0 => self.next_of_later(ahead_bytes, context),
            next => Ok(next),
        }
    }

    /// The next step of the member whose turn it is.
    fn next_in_turn(&mut self, room_bytes: u64, context: &PipelineContext) -> Result<NextSegment> {
        if self.stream_is_busy {
            return Ok(NextSegment::Wait);
        }
        while let Some(member) = self.members.get_mut(self.member) {
            let size_bytes = member.size_bytes;
            if let Some(ahead) = member.ahead.as_mut().filter(|ahead| ahead.has_segments()) {
                let segment = (room_bytes > 0).then(|| ahead.take_segment()).flatten();
                return Ok(
                    segment.map_or(NextSegment::Wait, |segment| filled(self.member, segment))
                );
            }
            let next = match &mut member.feed {
                Some(MemberFeed::Segments(_)) if room_bytes == 0 => return Ok(NextSegment::Wait),
                Some(MemberFeed::Segments(feed)) => {
                    let feed = feed.clone();
                    let (range, hash) =
                        next_range(&feed, &mut member.holes, self.offset, size_bytes);
                    self.next_segment(feed, range, hash)
                }
                Some(MemberFeed::Content(feed)) => {
                    let step = feed.next(room_bytes, context)?;
                    self.fed(step)
                }
                None => None,
            };
            match next {
                Some(next) => return Ok(next),
                None => self.skip_rest(self.member),
            }
        }
        Ok(NextSegment::Done)
    }

    /// The next job of a member whose turn comes later, or of the present one if some of its
    /// segments still wait. `bytes_max` is for all of them.
    fn next_of_later(&mut self, bytes_max: u64, context: &PipelineContext) -> Result<NextSegment> {
        let in_turn = self.member;
        let members = self.members.iter_mut().enumerate().skip(in_turn);
        let mut later: Vec<_> = members
            .filter_map(
                |(number, member)| match (&mut member.ahead, &mut member.feed) {
                    (Some(ahead), feed @ (None | Some(MemberFeed::Content(_)))) => {
                        ahead.is_in_turn = number == in_turn;
                        Some((ahead, feed))
                    }
                    _ => None,
                },
            )
            .filter(|(ahead, _)| !ahead.is_in_turn || ahead.has_segments())
            .take((bytes_max / MEMBER_BYTES_MIN) as usize)
            .collect();
        let complete = later.iter().filter(|(_, feed)| feed.is_none());
        let complete_bytes: u64 = complete.map(|(ahead, _)| ahead.taken_bytes()).sum();
        let open = later.iter().filter(|(_, feed)| feed.is_some()).count();
        let left_bytes = bytes_max.saturating_sub(complete_bytes);
        let share_bytes = left_bytes / open.max(1) as u64;
        for (ahead, member_feed) in &mut later {
            let Some(MemberFeed::Content(feed)) = member_feed else {
                continue;
            };
            match ahead.read(&mut **feed, share_bytes, context)? {
                FeedStep::Job(lane, job) => return Ok(NextSegment::Job(lane, job)),
                FeedStep::Done => **member_feed = None,
                FeedStep::Segment(_) | FeedStep::Wait => {}
            }
        }
        Ok(NextSegment::Wait)
    }

    /// Plans the next segment of the member, at `range`; `None` if that is empty.
    fn next_segment(
        &mut self,
        feed: SegmentFeed,
        range: Range<u64>,
        hash: HashKind,
    ) -> Option<NextSegment> {
        if range.is_empty() {
            return None;
        }
        let plan = SegmentPlan {
            member: self.member,
            offset_in_member: range.start,
            length_bytes: (range.end - range.start) as usize,
            hole_bytes: range.start - self.offset,
            hash,
        };
        self.offset = range.end;
        self.stream_is_busy = matches!(feed, SegmentFeed::Stream(_));
        Some(NextSegment::Segment(plan, feed))
    }

    /// Turns a step of the member's feed into the next segment; `None` at its end.
    fn fed(&mut self, step: FeedStep) -> Option<NextSegment> {
        match step {
            FeedStep::Segment(segment) => Some(filled(self.member, segment)),
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

    /// Whether a segment belongs to the content; `range` is its place, with the hole before it, in
    /// its member. Segments are planned with the member's initial size, and the member may become
    /// shorter while it is read. Must be called in content order.
    pub(crate) fn accept(&mut self, member: usize, range: Range<u64>) -> bool {
        let (expected_member, expected_offset) = self.expected;
        let follows = member > expected_member && range.start == 0;
        let continues = member == expected_member && range.start == expected_offset;
        if follows || continues {
            self.expected = (member, range.end);
        }
        follows || continues
    }

    /// Plans nothing more of this member: it ended.
    pub(crate) fn skip_rest(&mut self, member: usize) {
        if self.member == member {
            // Its memory is free.
            if let Some(member) = self.members.get_mut(member) {
                member.feed = None;
            }
            self.member += 1;
            self.offset = 0;
        }
    }
}

/// Where the next segment of a member is, at or after `offset`, and how it is hashed. Empty at the
/// end of a source.
fn next_range(
    feed: &SegmentFeed,
    holes: &mut Option<HoleFinder>,
    offset: u64,
    size_bytes: u64,
) -> (Range<u64>, HashKind) {
    let end = offset + SEGMENT_BYTES as u64;
    match (feed, holes) {
        (SegmentFeed::Stream(_), _) => (offset..end, HashKind::Plain),
        (SegmentFeed::Source(source), Some(holes)) if offset < size_bytes => {
            (holes.next(&**source, offset), HashKind::Sparse)
        }
        (SegmentFeed::Source(_), _) => (offset..end.min(size_bytes), HashKind::Plain),
    }
}

/// A segment whose bytes are available.
fn filled(member: usize, segment: FedSegment) -> NextSegment {
    let plan = SegmentPlan {
        member,
        offset_in_member: segment.offset_in_member,
        length_bytes: segment.bytes.len(),
        hole_bytes: 0,
        hash: HashKind::Plain,
    };
    NextSegment::Filled(plan, segment.bytes, segment.earlier)
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
            is_sparse: false,
            is_independent: false,
        }
    }

    fn stream() -> IntakeMember {
        let stream: Box<dyn Read + Send> = Box::new(std::io::empty());
        IntakeMember {
            feed: MemberFeed::Segments(SegmentFeed::Stream(Arc::new(Lock::new(Some(stream))))),
            size_bytes: 0,
            is_sparse: false,
            is_independent: false,
        }
    }

    fn next(intake: &mut Intake) -> NextSegment {
        intake.next(1, 0, &test_context()).unwrap()
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
