//! What the pipeline and the writer of a dialect agree on: traits and events.

use std::ops::Range;

use refrain_longmatch::Match;

use crate::error::Result;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::history::{EncodedPages, FilledPage};
use crate::write::pipeline::intake::SegmentPlan;
use crate::write::pipeline::segments::{EpochData, ReadSegment};
use crate::write::pipeline::settle::Settled;

/// What a job reports.
pub(crate) enum Event<C: Encoding> {
    /// A stream was read: its bytes for a slot of an epoch.
    StreamRead {
        epoch: u64,
        slot: usize,
        plan: SegmentPlan,
        bytes: Result<Vec<u8>>,
    },
    /// A segment is there.
    Segment {
        epoch: u64,
        slot: usize,
        segment: Result<ReadSegment>,
    },
    /// The repeats inside an epoch are known.
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
    /// An epoch became extents.
    Settled(Result<Box<Settled>>),
    /// The content of the epoch that is matched was hashed.
    Hashed(C::Hashes),
    /// Something was encoded.
    Encoded(Result<C::Encoded>),
}

/// What workers do for one kind of archive.
pub(crate) trait Encoding: 'static {
    /// Something to encode.
    type Job: Send + 'static;
    /// What came of it.
    type Encoded: Send + 'static;
    /// Digests of the content so far, if this kind of archive needs them in the order of content.
    type Hashes: Send + 'static;

    /// Does a job.
    fn encode(shared: &PipelineContext, job: Self::Job) -> Result<Self::Encoded>;

    /// Whether a job needs as much memory as a block does.
    fn is_large(_job: &Self::Job) -> bool {
        true
    }

    /// Whether it was such a job.
    fn was_large(_encoded: &Self::Encoded) -> bool {
        true
    }

    /// Appends an epoch to the content.
    fn hash(hashes: &mut Self::Hashes, data: &EpochData);
}

/// What receives the archive's parts as they become known, in the order of content.
pub(crate) trait Assembly {
    /// What workers do for it.
    type Encoding: Encoding;
    /// All segments of an epoch were read.
    fn epoch_read(&mut self, data: &EpochData) -> Result<()>;
    /// The digests that the next epoch goes into; they come back through [`Assembly::hashed`] before the epoch is settled.
    fn take_hashes(&mut self) -> Option<<Self::Encoding as Encoding>::Hashes>;
    /// An epoch went into them.
    fn hashed(&mut self, hashes: <Self::Encoding as Encoding>::Hashes);
    /// An epoch was settled. Returns jobs through `start`.
    fn epoch_settled(
        &mut self,
        epoch: u64,
        settled: &mut Settled,
        start: &mut dyn FnMut(<Self::Encoding as Encoding>::Job),
    ) -> Result<()>;
    /// No content follows; `last` is the page of the store that was being filled. Returns jobs through `start`.
    fn finish_content(
        &mut self,
        last: Option<FilledPage>,
        start: &mut dyn FnMut(<Self::Encoding as Encoding>::Job),
    ) -> Result<()>;
    /// A job is done.
    fn encoded(&mut self, encoded: <Self::Encoding as Encoding>::Encoded);
    /// Writes what can be written; returns pages whose blocks are safe.
    fn write_ready(&mut self) -> Result<Vec<EncodedPages>>;
    /// Whether nothing waits to be written.
    fn is_all_written(&self) -> bool;
    /// Blocks begun and not yet written.
    fn blocks_in_flight(&self) -> usize;
    /// Where the block that is being filled begins.
    fn block_start(&self) -> u64;
    /// Store bytes below this must not be referred to by `epoch`; `None` while that is not known.
    fn floor_for(&mut self, epoch: u64) -> Option<u64>;
}
