//! The interface between the pipeline and a dialect's writer: traits and events.

use std::ops::Range;

use refrain_longmatch::Match;

use crate::error::{Error, Result};
use crate::write::pipeline::commit::CommittedEpoch;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::history::{EncodedPages, FilledPage};
use crate::write::pipeline::refused_jobs::RefusedJob;
use crate::write::pipeline::segments::{EpochData, ReadSegment, SegmentPlan};

/// The result of a job, received by the coordinator.
pub(crate) enum PipelineEvent<C: Encoding> {
    /// A stream was read for a slot of an epoch.
    StreamRead {
        epoch: u64,
        slot: usize,
        plan: SegmentPlan,
        bytes: Result<Vec<u8>>,
    },
    /// A segment was read and scanned.
    Segment {
        epoch: u64,
        slot: usize,
        segment: Result<ReadSegment>,
    },
    /// The system refused memory for a job, which has done nothing.
    Refused(RefusedJob),
    /// A job of a member's feed is done.
    FeedJob,
    /// The repeats inside an epoch were found.
    Candidates {
        epoch: u64,
        candidates: Vec<Vec<u32>>,
        table: Vec<u64>,
    },
    /// A batch of segments was matched.
    Matched {
        batch: Range<usize>,
        matches: Vec<Vec<Match>>,
    },
    Committed(Result<Box<CommittedEpoch>>),
    /// The content of the epoch being matched was digested.
    Digested(C::Digests),
    /// An encode job has ended.
    Encoded(EncodeOutcome<C>),
}

/// The end of an encode job.
pub(crate) enum EncodeOutcome<C: Encoding> {
    Encoded(C::Encoded),
    Failed(Error),
    /// The system refused memory; the job may be tried again.
    Refused {
        job: C::EncodeJob,
        error: Error,
    },
}

/// The work of encoders for one dialect.
pub(crate) trait Encoding: 'static {
    /// A block, or anything else to encode.
    type EncodeJob: Send + 'static;
    /// The result of an encode job.
    type Encoded: Send + 'static;
    /// Digests of all content so far, if the dialect needs them in content order.
    type Digests: Send + 'static;

    /// Does the job. If the system refuses memory, the same job is tried again later.
    fn encode(context: &PipelineContext, job: &Self::EncodeJob) -> Result<Self::Encoded>;

    /// A job for the same content that needs less memory, if the dialect allows the bytes of an
    /// archive to depend on the memory that there was.
    fn with_less_memory(_job: Self::EncodeJob) -> Option<Self::EncodeJob> {
        None
    }

    /// Whether a job needs as much memory as encoding a block.
    fn is_large(_job: &Self::EncodeJob) -> bool {
        true
    }

    /// Whether the result is from a large job.
    fn was_large(_encoded: &Self::Encoded) -> bool {
        true
    }

    /// Appends the content of an epoch.
    fn digest(digests: &mut Self::Digests, data: &EpochData);
}

/// Builds an archive of one dialect from committed epochs and encoded parts. Epochs come in content
/// order.
pub(crate) trait Assembly {
    /// The work of its encoders.
    type Encoding: Encoding;
    /// Whether an epoch may be matched once all its segments were read: jobs of feeds may have to
    /// be done first.
    fn may_begin(&self, _data: &EpochData) -> bool {
        true
    }
    /// All segments of an epoch were read; it will be matched next.
    fn epoch_read(&mut self, data: &EpochData) -> Result<()>;
    /// Lends out the digests for the next epoch. They return through [`Assembly::digested`] before
    /// the epoch is committed.
    fn take_digests(&mut self) -> Option<<Self::Encoding as Encoding>::Digests>;
    /// Takes the digests back, with the epoch appended.
    fn digested(&mut self, hashes: <Self::Encoding as Encoding>::Digests);
    /// An epoch was committed. Passes encode jobs to `start`.
    fn epoch_committed(
        &mut self,
        epoch: u64,
        committed: &mut CommittedEpoch,
        start: &mut dyn FnMut(<Self::Encoding as Encoding>::EncodeJob),
    ) -> Result<()>;
    /// The content is complete; `last` is the unfinished page of the store. Passes encode jobs to
    /// `start`.
    fn finish_content(
        &mut self,
        last: Option<FilledPage>,
        start: &mut dyn FnMut(<Self::Encoding as Encoding>::EncodeJob),
    ) -> Result<()>;
    fn encoded(&mut self, encoded: <Self::Encoding as Encoding>::Encoded);
    /// Writes all parts that are next in order. Returns the pages whose blocks were written, or
    /// need not be awaited.
    fn write_ready(&mut self) -> Result<Vec<EncodedPages>>;
    /// Whether every part was written.
    fn is_all_written(&self) -> bool;
    /// The number of filled blocks not yet written.
    fn blocks_in_flight(&self) -> usize;
    /// The store offset where the room of the block being filled begins: with at most `block_bytes`
    /// from there on, it is one block or several.
    fn block_start(&self) -> u64;
    /// The store offset below which the next epoch, `epoch` with this much content, must not refer;
    /// `None` until known.
    fn floor_for(&mut self, epoch: u64, content_bytes: u64) -> Option<u64>;
}
