//! The members of a native archive while it is written: their hashes, entries and ends.

use refrain_codec::{BlockPlan, CodecId, Workspace, encode_block};
use refrain_format::{
    EntriesHeader, Entry, MemberEnd, MemberStart, entries_are_sorted, entry_batches, pack_entries,
};
use refrain_protect::{ContentHasher, DigestAlgorithm, DigestHasher, SegmentHash};

use crate::digests;
use crate::error::{Error, ErrorKind, Result};
use crate::store::coding::coding;
use crate::write::input::{MemberPlan, TakeEntries};
use crate::write::native::extents::METADATA_LEVEL;
use crate::write::native::output::Frame;

/// A member that is being written.
pub(crate) struct MemberWriter {
    pub start: MemberStart,
    hasher: ContentHasher,
    entries: Option<TakeEntries>,
    /// Hashers of further digests.
    digests: Vec<DigestHasher>,
}

impl MemberWriter {
    pub(crate) fn new(plan: MemberPlan, digests: &[DigestAlgorithm]) -> MemberWriter {
        MemberWriter {
            start: plan.start,
            hasher: ContentHasher::new(),
            entries: plan.entries,
            digests: digests::hashers(digests),
        }
    }

    /// Appends the next segment of the member.
    pub(crate) fn push(&mut self, hash: &SegmentHash, bytes: &[u8]) -> Result<()> {
        self.digests
            .iter_mut()
            .for_each(|hasher| hasher.update(bytes));
        self.hasher
            .push(hash)
            .map_err(|error| Error::new(ErrorKind::Internal, error))
    }

    /// The frames that follow the member's content: its entries, if it is a tree, and MemberEnd.
    pub(crate) fn end(&mut self) -> Result<Vec<Frame>> {
        let entries = self.entries.as_mut().map(|take| take()).unwrap_or_default();
        let mut frames = vec![];
        let mut entry_count = 0;
        for batch in entry_batches(&entries) {
            let (header, bytes) = self.entries_frame(entry_count, batch)?;
            entry_count += header.entry_count;
            frames.push(Frame::Entries(header, bytes));
        }
        frames.push(Frame::MemberEnd(MemberEnd {
            member_id: self.start.member_id,
            content_bytes: self.hasher.content_bytes(),
            view_bytes: self.hasher.content_bytes(),
            entry_count,
            blake3: self.hasher.value(),
            entries_are_sorted: entries_are_sorted(&entries),
            digests: digests::finish(std::mem::take(&mut self.digests)),
        }));
        Ok(frames)
    }

    fn entries_frame(&self, first_entry: u64, batch: &[Entry]) -> Result<(EntriesHeader, Vec<u8>)> {
        let packed = pack_entries(batch)?;
        let mut builder = EntriesHeader::builder(&packed, Vec::new());
        let plan = BlockPlan::plain(CodecId::ZSTD, METADATA_LEVEL);
        let description =
            encode_block(&mut Workspace::new(), &packed.raw, &plan, builder.payload())?;
        let coding = coding(&description)?;
        let header = EntriesHeader::new(self.start.member_id, first_entry, &packed, coding);
        let frame = header.finish(builder)?;
        Ok((header, frame))
    }
}

impl Frame {
    /// An upper bound of the frame's size, for the reach.
    pub(crate) fn bytes_max(&self) -> u64 {
        const HEADS: u64 = 512;
        match self {
            Frame::MemberStart(start) => HEADS + start.name.len() as u64,
            Frame::MemberEnd(end) => HEADS + end.digests.len() as u64 * 80,
            Frame::Entries(_, bytes) | Frame::Extents(_, _, bytes) => bytes.len() as u64,
            Frame::Block(_, frame) => frame.frame_bytes(),
        }
    }
}
