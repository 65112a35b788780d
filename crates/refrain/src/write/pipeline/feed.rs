//! Feeds: members whose content is assembled by their own jobs before it is scanned, such as the
//! files of a directory.

use refrain_pool::Lane;

use crate::error::Result;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::segments::EarlierPart;

/// A job of a feed. It leaves its result where the feed finds it.
pub(crate) type FeedJob = Box<dyn FnOnce(&PipelineContext) + Send>;

/// A segment of a feed.
pub(crate) struct FedSegment {
    pub offset_in_member: u64,
    pub bytes: Vec<u8>,
    /// What its parts were in an earlier generation, by ascending position.
    pub earlier: Vec<EarlierPart>,
}

/// What a feed does next.
pub(crate) enum FeedStep {
    /// The next content of the member, starting at a multiple of a segment. Shorter than a segment
    /// only at the member's end.
    Segment(FedSegment),
    /// A job to run. The feed is called again when it is done.
    Job(Lane, FeedJob),
    /// Nothing until one of its jobs is done, or there is room.
    Wait,
    /// The member is complete.
    Done,
}

/// The content of a member, produced in order.
pub(crate) trait ContentFeed: Send {
    /// The next step. Does not start reading once its jobs have read, or are reading, `room_bytes`
    /// that are in no segment yet. With room for a segment, a feed without jobs in flight always
    /// has a step.
    ///
    /// # Errors
    /// From its jobs.
    fn next(&mut self, room_bytes: u64, context: &PipelineContext) -> Result<FeedStep>;

    /// The bytes read by its jobs so far, including those that are not content.
    fn read_bytes(&self) -> u64;

    fn next_read_bytes_max(&self) -> u64;
}
