//! Puts a writer's frames in order: sets their sequence numbers, collects the index, and rejects
//! what a reader would reject.
//!
//! It does no input or output: every call returns, or completes in place, the bytes to write next,
//! strictly forward.

use std::sync::Arc;

use crate::archive::ArchiveHeader;
use crate::block::BlockHeader;
use crate::block_hash::BlockHash;
use crate::constants::{FRAME_HEADER_BYTES, FrameKind, MAGIC, TAIL_BYTES};
use crate::decoder::{DecoderHeader, DecoderRole};
use crate::end::{ArchiveEnd, ExtentTotals, Tail};
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;
use crate::frame::{
    FLAG_KEEP, FLAG_SKIPPABLE, UntrustedFrameHeader, complete_frame, finish_header, set_generation,
};
use crate::generation::{AnchorsFrame, Catalog, GenerationStart, PiecesFrame};
use crate::index::{
    IndexBlock, IndexBuilder, IndexEntries, IndexEpoch, IndexMember, IndexNode, IndexSlice,
};
use crate::limits::Limits;
use crate::member::{MemberEnd, MemberStart};
use crate::order::{EpochSums, StreamChecker};

pub use crate::order::GenerationBase;
use crate::payload::Payload;

#[derive(Debug, Clone)]
struct OpenMember {
    start_frame_offset: u64,
    start: MemberStart,
    first_frame: Option<u64>,
}

/// Orders the frames of one archive. Memory: the index to be written (about 8 bytes for each block
/// and each epoch).
#[derive(Debug, Clone)]
pub struct ArchiveAssembler {
    checker: StreamChecker,
    index: IndexBuilder,
    open_members: std::collections::VecDeque<OpenMember>,
    archive_id: u32,
    totals: ExtentTotals,
    /// The totals to state instead of the sums of the extents.
    stated_totals: Option<ExtentTotals>,
    block_count: u64,
    fallback_count: u64,
    view_bytes: u64,
    entries_frames: u64,
    generation: u16,
    /// The offset of the latest Decoder frame.
    last_decoder: Option<u64>,
}

/// A complete archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedArchive {
    /// The last bytes, still to be written: the Index frames, the End frame, and the tail.
    pub last_bytes: Vec<u8>,
    /// What the End frame states.
    pub end: ArchiveEnd,
    /// The archive's id.
    pub archive_id: u32,
    /// The hashes of the members, which the root hash covers.
    pub member_hashes: Vec<[u8; 32]>,
    /// The number of blocks.
    pub block_count: u64,
    /// The length of all members as streams, in bytes ([`MemberEnd::view_bytes`]).
    pub view_bytes: u64,
}

impl ArchiveAssembler {
    /// Starts an archive. Returns the assembler and the first bytes of the file: magic number and
    /// Archive frame.
    ///
    /// # Errors
    /// Settings that a reader rejects.
    pub fn new(header: &ArchiveHeader, archive_id: u32) -> Result<(Self, Vec<u8>)> {
        let mut assembler = Self::empty(archive_id);
        let frame = header.to_frame(archive_id)?;
        assembler.feed(&frame, &Payload::Archive(*header))?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&frame);
        Ok((assembler, bytes))
    }

    fn empty(archive_id: u32) -> Self {
        Self {
            checker: StreamChecker::measuring_reach(&Limits::default()),
            index: IndexBuilder::default(),
            open_members: std::collections::VecDeque::new(),
            archive_id,
            totals: ExtentTotals::default(),
            stated_totals: None,
            block_count: 0,
            fallback_count: 0,
            view_bytes: 0,
            entries_frames: 0,
            generation: 0,
            last_decoder: None,
        }
    }

    /// Gives a frame, as others complete it, its generation, its id and its sequence number.
    fn complete(&self, mut frame: Vec<u8>) -> Vec<u8> {
        self.number_frame(&mut frame);
        frame
    }

    /// Continues an archive behind a generation, with its index from these right edges, one for
    /// each list ([`IndexTree::right_edge`](crate::IndexTree::right_edge)). Returns the assembler
    /// and the bytes to append: the frame that begins the next generation.
    ///
    /// # Errors
    /// There are too many generations; a part of the index cannot be continued.
    pub fn resume(base: &GenerationBase, edges: &[Vec<Arc<IndexNode>>]) -> Result<(Self, Vec<u8>)> {
        let [block_count, _, entries_frames] = base.row_counts;
        let mut assembler = Self {
            checker: StreamChecker::after(base),
            index: IndexBuilder::resume(edges)?,
            totals: base.end.totals,
            block_count,
            fallback_count: base.end.fallback_count,
            entries_frames,
            generation: base.generation.saturating_add(1),
            last_decoder: base.end.last_decoder,
            ..Self::empty(base.archive_id)
        };
        let start = GenerationStart {
            previous_bytes: base.end.archive_bytes,
            previous_root_hash: base.end.root_hash,
        };
        let kind = FrameKind::Generation;
        let frame = assembler.complete(complete_frame(kind, 0, &start.to_payload(), 0, 0));
        assembler.feed(&frame, &Payload::Generation(start))?;
        Ok((assembler, frame))
    }

    /// Adds the catalog of a generation, after its last member and before
    /// [`finish`](Self::finish). Returns the frame.
    ///
    /// # Errors
    /// The frame is not allowed here, or a row is out of its range.
    pub fn catalog(&mut self, catalog: &Catalog) -> Result<Vec<u8>> {
        let payload = catalog.to_payload()?;
        let frame = self.complete(complete_frame(FrameKind::Catalog, 0, &payload, 0, 0));
        self.feed(&frame, &Payload::Catalog(catalog.clone()))?;
        Ok(frame)
    }

    /// Adds a frame of anchors. Returns it.
    ///
    /// # Errors
    /// The frame is not allowed here, or an anchor is out of its range.
    pub fn anchors(&mut self, anchors: &AnchorsFrame) -> Result<Vec<u8>> {
        self.skippable(FrameKind::Anchors, &anchors.to_payload()?)
    }

    /// Adds a frame of pieces. Returns it.
    ///
    /// # Errors
    /// The frame is not allowed here, or a value is out of its range.
    pub fn pieces(&mut self, pieces: &PiecesFrame) -> Result<Vec<u8>> {
        self.skippable(FrameKind::Pieces, &pieces.to_payload()?)
    }

    /// Adds a frame with this decoder, whose distance is set, and its module. Returns it.
    ///
    /// # Errors
    /// The frame is not allowed here, or the module is too large.
    pub fn decoder(&mut self, header: &DecoderHeader, module: &[u8]) -> Result<Vec<u8>> {
        let header = DecoderHeader {
            back_bytes: self.decoder_back_bytes(),
            ..*header
        };
        self.decoder_frame(&header.to_payload(module)?)
    }

    /// Adds a frame that says that a codec or filter is that of a plug-in. Returns it.
    ///
    /// # Errors
    /// The frame is not allowed here; no plug-in can have this name.
    pub fn plugin(&mut self, role: DecoderRole, name: &str) -> Result<Vec<u8>> {
        let back_bytes = self.decoder_back_bytes();
        self.decoder_frame(&DecoderHeader::plugin_payload(role, name, back_bytes)?)
    }

    fn decoder_back_bytes(&self) -> u64 {
        let offset = self.archive_bytes();
        self.last_decoder
            .map_or(0, |last| offset.saturating_sub(last))
    }

    fn decoder_frame(&mut self, payload: &[u8]) -> Result<Vec<u8>> {
        let offset = self.archive_bytes();
        let flags = FLAG_SKIPPABLE | FLAG_KEEP;
        let frame = self.complete(complete_frame(FrameKind::Decoder, flags, payload, 0, 0));
        self.feed(&frame, &Payload::Skipped)?;
        self.last_decoder = Some(offset);
        Ok(frame)
    }

    /// Sets how many bytes of rows a node of the index may have; call it before the first frame
    /// after Archive. Small nodes give small archives deep indexes, for tests.
    #[must_use]
    pub fn with_index_node_bytes(self, node_bytes: usize) -> Self {
        Self {
            index: IndexBuilder::with_node_bytes(node_bytes),
            ..self
        }
    }

    /// Starts an archive of frames that already exist ([`transfer`](Self::transfer)), including the
    /// Archive frame. Its index states these totals.
    pub(crate) fn for_transfer(archive_id: u32, totals: ExtentTotals) -> Self {
        Self {
            stated_totals: Some(totals),
            ..Self::empty(archive_id)
        }
    }

    /// Adds a frame with the payload of another archive's frame and returns it.
    ///
    /// # Errors
    /// The payload is damaged, or the frame is not allowed here.
    pub(crate) fn transfer(&mut self, kind: FrameKind, payload: &[u8]) -> Result<Vec<u8>> {
        if !kind.is_known() {
            return Err(FormatError::Kind { kind: kind.id() });
        }
        let sequence = self.checker.frame_count();
        let mut frame = complete_frame(kind, 0, payload, self.archive_id, sequence);
        match Payload::parse(kind, payload, &Limits::default())? {
            archive @ Payload::Archive(_) => self.feed(&frame, &archive)?,
            Payload::MemberStart(start) => self.add_member_start(&frame, start)?,
            Payload::Block { header, .. } => self.block(&header, &mut frame, 0)?,
            Payload::Extents { header, .. } => self.add_extents(&header, &mut frame)?,
            Payload::Entries { header, .. } => self.entries(&header, &mut frame)?,
            Payload::MemberEnd(end) => self.add_member_end(&frame, end)?,
            Payload::Index(_)
            | Payload::End { .. }
            | Payload::Generation(_)
            | Payload::Catalog(_)
            | Payload::Skipped => {
                return Err(FormatError::Order {
                    kind,
                    rule: "a Whole frame holds frames of the kinds Archive to MemberEnd",
                });
            }
        }
        Ok(frame)
    }

    /// Returns the number of bytes of the archive so far, which is the offset of the next frame.
    #[must_use]
    pub fn archive_bytes(&self) -> u64 {
        self.checker.offset()
    }

    /// Returns the number of content bytes that the extents so far cover.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.checker.content_bytes()
    }

    /// Returns the number of raw bytes of the blocks so far.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        self.checker.store_bytes()
    }

    /// Returns the number of members that have ended.
    #[must_use]
    pub fn member_count(&self) -> u64 {
        self.checker.member_count()
    }

    /// Starts a member. Returns the frame.
    ///
    /// # Errors
    /// The frame is not allowed here, or a field is out of its range.
    pub fn member_start(&mut self, start: &MemberStart) -> Result<Vec<u8>> {
        let frame = self.complete(start.to_frame(self.archive_id, self.checker.frame_count())?);
        self.add_member_start(&frame, start.clone())?;
        Ok(frame)
    }

    fn add_member_start(&mut self, frame: &[u8], start: MemberStart) -> Result<()> {
        let start_frame_offset = self.archive_bytes();
        self.feed(frame, &Payload::MemberStart(start.clone()))?;
        self.open_members.push_back(OpenMember {
            start_frame_offset,
            start,
            first_frame: None,
        });
        Ok(())
    }

    /// Completes a frame made by [`BlockHeader::finish`] from `header`, or one made by
    /// [`BlockHeader::finish_detached`], with `detached_bytes` of data to be written after it.
    ///
    /// # Errors
    /// The frame is not allowed here.
    pub fn block(
        &mut self,
        header: &BlockHeader,
        frame: &mut [u8],
        detached_bytes: u64,
    ) -> Result<()> {
        self.block_with_hash(header, frame, detached_bytes, None)
    }

    /// Drops the hashes of the blocks of an archive that is small enough to become a Whole frame,
    /// which has none.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn drop_block_hashes(&mut self) -> Result<()> {
        self.index.drop_hashes()
    }

    /// As [`block`](Self::block); the index states `hash`, which is that of the block.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn block_with_hash(
        &mut self,
        header: &BlockHeader,
        frame: &mut [u8],
        detached_bytes: u64,
        hash: Option<BlockHash>,
    ) -> Result<()> {
        let (frame_offset, frame_bytes) = self.number_frame(frame);
        let frame_bytes = frame_bytes.saturating_add(detached_bytes);
        let payload = Payload::Block {
            header: *header,
            data: &[],
        };
        self.feed_detached(frame, detached_bytes, &payload)?;
        let coding = &header.coding;
        self.block_count += 1;
        self.fallback_count += u64::from(coding.fallback() != 0);
        self.index.push_block(&IndexBlock {
            frame_offset,
            frame_bytes,
            store_start: header.store_start,
            raw_bytes: header.raw_bytes,
            codec: coding.codec(),
            filter_ids: coding.filter_ids(),
            hash,
        })
    }

    /// Completes a frame made by [`ExtentsHeader::finish`] from `header`. `sums` are the sums of
    /// its extents.
    ///
    /// # Errors
    /// The frame is not allowed here, or exceeds the promised reach.
    pub fn extents(
        &mut self,
        header: &ExtentsHeader,
        sums: &EpochSums,
        frame: &mut [u8],
    ) -> Result<()> {
        self.add_extents(header, frame)?;
        self.checker.observe_epoch(sums)?;
        self.totals.matched_bytes += sums.matched_bytes;
        self.totals.fill_bytes += sums.run_bytes;
        Ok(())
    }

    fn add_extents(&mut self, header: &ExtentsHeader, frame: &mut [u8]) -> Result<()> {
        let (frame_offset, frame_bytes) = self.number_frame(frame);
        let payload = Payload::Extents {
            header: *header,
            data: &[],
        };
        self.feed(frame, &payload)?;
        self.index.push_epoch(&IndexEpoch {
            frame_offset,
            frame_bytes,
            content_start: header.content_start,
            content_bytes: header.content_bytes,
            store_start: header.store_start,
            fresh_bytes: header.fresh_bytes,
            extent_count: header.extent_count,
        })
    }

    /// Completes a frame made by [`EntriesHeader::finish`] from `header`.
    ///
    /// # Errors
    /// The frame is not allowed here.
    pub fn entries(&mut self, header: &EntriesHeader, frame: &mut [u8]) -> Result<()> {
        let (frame_offset, frame_bytes) = self.number_frame(frame);
        let payload = Payload::Entries {
            header: header.clone(),
            data: &[],
        };
        self.feed(frame, &payload)?;
        let number = self.entries_frames;
        self.entries_frames += 1;
        let mut open = self.open_members.iter_mut();
        if let Some(member) = open.find(|member| member.start.member_id == header.member_id) {
            member.first_frame.get_or_insert(number);
        }
        self.index
            .push_entries(&IndexEntries::new(frame_offset, frame_bytes, header))
    }

    /// States the path order of the oldest open member's entries: a tree whose frames of entries
    /// are not in path order. The slices name frames by their numbers in the member. Call it before
    /// [`member_end`](Self::member_end).
    ///
    /// # Errors
    /// The slices are not in path order. Slices that do not hold every entry exactly once are found
    /// at the end.
    pub fn slices(&mut self, slices: impl IntoIterator<Item = IndexSlice>) -> Result<()> {
        let first = self.open_members.front().and_then(|open| open.first_frame);
        let first = first.unwrap_or_default();
        slices.into_iter().try_for_each(|slice| {
            self.index.push_slice(&IndexSlice {
                frame: first.saturating_add(slice.frame),
                ..slice
            })
        })
    }

    /// Ends the oldest open member. Returns the frame.
    ///
    /// # Errors
    /// The frame is not allowed here, or a field is out of its range.
    pub fn member_end(&mut self, end: &MemberEnd) -> Result<Vec<u8>> {
        let frame = self.complete(end.to_frame(self.archive_id, self.checker.frame_count())?);
        self.add_member_end(&frame, end.clone())?;
        Ok(frame)
    }

    fn add_member_end(&mut self, frame: &[u8], end: MemberEnd) -> Result<()> {
        let end_frame_offset = self.archive_bytes();
        self.feed(frame, &Payload::MemberEnd(end.clone()))?;
        if let Some(member) = self.open_members.pop_front() {
            self.view_bytes = self.view_bytes.saturating_add(end.view_bytes);
            self.index.push_member(&IndexMember {
                start_frame_offset: member.start_frame_offset,
                end_frame_offset,
                start: member.start,
                end,
            })?;
        }
        Ok(())
    }

    /// Returns a frame that readers skip: padding, or a reserved kind. `payload` begins with a
    /// head.
    ///
    /// # Errors
    /// Readers do not skip frames of this kind.
    pub fn skippable(&mut self, kind: FrameKind, payload: &[u8]) -> Result<Vec<u8>> {
        let frame = self.complete(complete_frame(kind, FLAG_SKIPPABLE, payload, 0, 0));
        self.feed(&frame, &Payload::Skipped)?;
        Ok(frame)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// A member has not ended, or a value is above its limit.
    pub fn finish(mut self) -> Result<FinishedArchive> {
        let mut last_bytes = Vec::new();
        let index = std::mem::take(&mut self.index);
        let roots = index.finish(&mut |payload| {
            let frame = self.index_frame(payload)?;
            let span = (
                self.archive_bytes() - frame.len() as u64,
                frame.len() as u64,
            );
            last_bytes.extend(frame);
            Ok::<_, FormatError>(span)
        })?;
        let (end, frame) = self.end_frame(&roots)?;
        let (_, roots) = ArchiveEnd::parse(frame.get(FRAME_HEADER_BYTES..).unwrap_or_default())?;
        self.feed(&frame, &Payload::End { end, roots })?;
        let tail = Tail {
            back_bytes: frame.len() as u64,
        };
        last_bytes.extend(frame);
        self.checker.tail(&tail.to_bytes())?;
        last_bytes.extend(tail.to_bytes());
        Ok(FinishedArchive {
            last_bytes,
            end,
            archive_id: self.archive_id,
            member_hashes: self.checker.member_hashes().to_vec(),
            block_count: self.block_count,
            view_bytes: self.view_bytes,
        })
    }

    fn index_frame(&mut self, payload: &[u8]) -> Result<Vec<u8>> {
        let frame = self.complete(complete_frame(FrameKind::Index, 0, payload, 0, 0));
        let node = Payload::parse(FrameKind::Index, payload, &Limits::default())?;
        self.feed(&frame, &node)?;
        Ok(frame)
    }

    fn end_frame(&self, roots: &[u8]) -> Result<(ArchiveEnd, Vec<u8>)> {
        let sequence = self.checker.frame_count();
        let measured = match self.generation {
            0 => ExtentTotals {
                reach_needed_bytes: self.checker.reach_needed_bytes(),
                ..self.totals
            },
            _ => self.totals,
        };
        // The frame's size depends on the archive's, which includes it.
        let mut frame_bytes = FRAME_HEADER_BYTES as u64;
        loop {
            let before_tail = self.archive_bytes().saturating_add(frame_bytes);
            let end = ArchiveEnd {
                content_bytes: self.checker.content_bytes(),
                store_bytes: self.checker.store_bytes(),
                frame_count: sequence.saturating_add(1),
                member_count: self.checker.member_count(),
                archive_bytes: before_tail.saturating_add(TAIL_BYTES as u64),
                totals: self.stated_totals.unwrap_or(measured),
                fallback_count: self.fallback_count,
                root_hash: self.checker.root_hash(),
                generation: self.checker.generation_end(),
                last_decoder: self.last_decoder,
            };
            let frame = self.complete(end.to_frame(roots, self.archive_id, sequence)?);
            if frame.len() as u64 == frame_bytes {
                return Ok((end, frame));
            }
            frame_bytes = frame.len() as u64;
        }
    }

    fn number_frame(&self, frame: &mut [u8]) -> (u64, u64) {
        if self.generation != 0 {
            set_generation(frame, self.generation);
        }
        finish_header(frame, self.archive_id, self.checker.frame_count());
        (self.archive_bytes(), frame.len() as u64)
    }

    fn feed(&mut self, frame: &[u8], payload: &Payload<'_>) -> Result<()> {
        self.feed_detached(frame, 0, payload)
    }

    fn feed_detached(
        &mut self,
        frame: &[u8],
        detached_bytes: u64,
        payload: &Payload<'_>,
    ) -> Result<()> {
        let remaining =
            (frame.len() as u64 + detached_bytes).saturating_sub(FRAME_HEADER_BYTES as u64);
        let header =
            UntrustedFrameHeader::parse(frame)?.check(&Limits::default(), Some(remaining))?;
        if header.payload_bytes != remaining {
            return Err(FormatError::Trailing {
                what: "a complete frame",
                extra_bytes: remaining.saturating_sub(header.payload_bytes),
            });
        }
        self.checker.feed(&header, payload)
    }
}
