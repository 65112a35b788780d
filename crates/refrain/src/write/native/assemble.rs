//! Assembles a native archive: decides the order of frames.
//!
//! The extents of an epoch precede the blocks with its fresh bytes, so that a truncated archive is
//! readable up to the cut. A reader that cannot seek holds them back until the epoch is complete,
//! when its last fresh byte has arrived; how much it must hold back is limited. A member begins
//! before the extents of its first byte and ends after the extents of its last.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_codec::FallbackReason;
use refrain_format::limits::HELD_BYTES_MAX;
use refrain_format::{Anchor, AnchorsFrame, GenerationBase};
use refrain_pool::stages::stage;

use crate::archive_info::BlockInfo;
use crate::error::Result;
use crate::progress::{Progress, Watch};
use crate::store::block::{EncodedBlock, UnencodedBlock};
use crate::store::compressed_copy::CompressedCopy;
use crate::store::page::{PAGE_BYTES, Page};
use crate::write::native::copied::{CopiedMembers, Copying};
use crate::write::native::extents::{EncodedExtents, EpochExtents, UnencodedExtents};
use crate::write::native::generation::AnchorsWriter;
use crate::write::native::holes::{EpochPart, Hole, with_holes};
use crate::write::native::kinds::{Kinds, run_pages};
use crate::write::native::members::MemberWriter;
use crate::write::native::output::{Frame, Output, Ticket, Written, WrittenBlock};
use crate::write::native::plugin_notices::PluginNotices;
use crate::write::native::references::ReferenceFinder;
use crate::write::native::written_blocks::WrittenBlocks;
use crate::write::pipeline::assembly::{Assembly, Encoding};
use crate::write::pipeline::commit::CommittedEpoch;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::history::{EncodedPages, FilledPage};
use crate::write::pipeline::reach::ReachFloors;
use crate::write::pipeline::segments::EpochData;
use crate::write::pipeline::trails::Trails;

/// The maximum number of epochs waiting for a block to be complete. A reader that cannot seek
/// outputs none of them until that.
const EPOCHS_WAITING_MAX: usize = 64;

/// The maximum bytes of frames waiting for a block to be complete, before the frames of one more
/// epoch: half of what the format permits.
const WAITING_BYTES_MAX: u64 = HELD_BYTES_MAX / 2;

/// An upper bound on the size of an Extents frame without its section.
const EXTENTS_HEADS_BYTES_MAX: u64 = 4096;

/// As above for the frame of a hole: it has one extent, and an epoch may have many.
const HOLE_HEADS_BYTES_MAX: u64 = 256;

struct WaitingEpoch {
    /// The end of its fresh bytes in the store.
    store_end: u64,
    /// An upper bound on the size of its frames, and of members' frames before the next epoch.
    frames_bytes_max: u64,
}

/// The frames that a reader holds back because a block is incomplete.
#[derive(Default)]
struct WaitingFrames {
    epochs: VecDeque<WaitingEpoch>,
    bytes_max: u64,
}

impl WaitingFrames {
    /// Closed blocks have the store up to this offset.
    fn closed_up_to(&mut self, store_end: u64) {
        let is_complete = |epoch: &mut WaitingEpoch| epoch.store_end <= store_end;
        while let Some(epoch) = self.epochs.pop_front_if(is_complete) {
            self.bytes_max -= epoch.frames_bytes_max;
        }
    }

    /// Adds frames of at most `bytes_max` in total.
    fn add(&mut self, bytes_max: u64) {
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.frames_bytes_max += bytes_max;
            self.bytes_max += bytes_max;
        }
    }
}

#[derive(Default)]
struct OpenBlock {
    store_start: u64,
    /// Where the first of the blocks begins that share the room of one, because the kind of
    /// content changed.
    room_start: u64,
    first_page: u64,
    pages: Vec<Page>,
    bytes: u64,
    has_repeats: bool,
    has_near_repeats: bool,
    kinds: Kinds,
}

impl OpenBlock {
    fn store_end(&self) -> u64 {
        self.store_start + self.bytes
    }
}

/// What is recorded about a block between encoding and writing.
struct UnwrittenBlock {
    first_page: u64,
    copy: Option<CompressedCopy>,
}

pub(crate) enum NativeEncodeJob {
    Block {
        ticket: Ticket,
        first_page: u64,
        job: UnencodedBlock,
    },
    Extents {
        ticket: Ticket,
        job: UnencodedExtents,
    },
}

pub(crate) enum NativeEncoded {
    Block {
        ticket: Ticket,
        first_page: u64,
        block: Box<EncodedBlock>,
    },
    Extents {
        ticket: Ticket,
        extents: Box<EncodedExtents>,
    },
}

/// The work of encoders for native archives.
pub(crate) struct NativeEncoding;

impl Encoding for NativeEncoding {
    type EncodeJob = NativeEncodeJob;
    type Encoded = NativeEncoded;
    type Digests = ();

    fn encode(context: &PipelineContext, job: &NativeEncodeJob) -> Result<NativeEncoded> {
        Ok(match job {
            NativeEncodeJob::Block {
                ticket,
                first_page,
                job,
            } => {
                let _stage = stage("encode", job.raw_bytes());
                let block = job.encode(
                    &context.workspaces,
                    &context.tuning.plan,
                    context.history.makes_copies(),
                )?;
                // Pages of a block stored uncompressed are read from its frame.
                if let Some(spill) = &context.spill
                    && block.frame.stored.is_empty()
                {
                    spill.add(*first_page, job.pages.clone());
                }
                NativeEncoded::Block {
                    ticket: *ticket,
                    first_page: *first_page,
                    block: Box::new(block),
                }
            }
            NativeEncodeJob::Extents { ticket, job } => {
                let _stage = stage("encode extents", 0);
                let spaces = &context.small_workspaces;
                let blocks = context.tuning.plan.codec;
                let earlier = context.trails.as_ref().map(Trails::content);
                let extents = spaces.with(|space| job.encode(&mut space.codec, blocks, earlier));
                NativeEncoded::Extents {
                    ticket: *ticket,
                    extents: Box::new(extents?),
                }
            }
        })
    }

    fn is_large(job: &NativeEncodeJob) -> bool {
        matches!(job, NativeEncodeJob::Block { .. })
    }

    fn was_large(encoded: &NativeEncoded) -> bool {
        matches!(encoded, NativeEncoded::Block { .. })
    }

    fn digest(_digests: &mut (), _data: &EpochData) {}
}

/// Context for a run's progress, besides its content.
pub(crate) struct ProgressCounts {
    /// The bytes of all members, if known.
    pub content_bytes_total: Option<u64>,
    /// The bytes of files found equal to others, which are not content.
    pub duplicate_bytes: Arc<AtomicU64>,
}

pub(crate) struct Assembler<'a> {
    pub output: Output<'a>,
    members: Vec<MemberWriter>,
    members_started: usize,
    members_ended: usize,
    watch: &'a dyn Watch,
    counts: ProgressCounts,
    pub(super) context: Arc<PipelineContext>,
    reach: ReachFloors,
    written_blocks: Option<Arc<WrittenBlocks>>,
    open_block: OpenBlock,
    splits_kinds: bool,
    /// Whether the last two epochs, the first of which may end in the same page, had references.
    pub(super) has_repeats: [bool; 2],
    /// Whether the last epoch had near repeats.
    pub(super) near_repeats: bool,
    next_block: u64,
    next_epoch: u64,
    /// Finds extents that earlier epochs already have.
    references: ReferenceFinder,
    /// The number of Extents frames so far: the id of the archive's next epoch.
    extents_frames: u64,
    blocks_in_flight: usize,
    waiting: WaitingFrames,
    waiting_bytes_max: u64,
    unwritten: HashMap<u64, UnwrittenBlock>,
    notices: PluginNotices,
    /// Content bytes committed so far.
    pub(super) content_committed: u64,
    /// Store bytes introduced by committed epochs.
    pub(super) store_committed: u64,
    /// Content bytes read so far, where the next member may begin.
    content_read: u64,
    last_member: usize,
    /// The holes of the latest epoch.
    holes: Vec<Hole>,
    /// The anchors of the store, if the archive keeps them.
    anchors: Option<AnchorsWriter>,
    /// The content of earlier generations, in bytes.
    content_before: u64,
    /// The members, if they are copied from another archive.
    pub(super) copying: Option<Copying>,
}

impl<'a> Assembler<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        output: Output<'a>,
        members: Vec<MemberWriter>,
        context: Arc<PipelineContext>,
        reach: ReachFloors,
        written_blocks: Option<Arc<WrittenBlocks>>,
        reference_window: u64,
        counts: ProgressCounts,
        watch: &'a dyn Watch,
    ) -> Assembler<'a> {
        let waiting_bytes_max = reach.waiting_frames_max().unwrap_or(WAITING_BYTES_MAX);
        // A limited reach counts on blocks of one size.
        let splits_kinds = context.tuning.plan.has_rivals() && !reach.is_limited();
        Assembler {
            output,
            members,
            members_started: 0,
            members_ended: 0,
            watch,
            counts,
            context,
            reach,
            written_blocks,
            open_block: OpenBlock::default(),
            splits_kinds,
            has_repeats: [false; 2],
            near_repeats: false,
            next_block: 0,
            next_epoch: 0,
            references: ReferenceFinder::new(reference_window),
            extents_frames: 0,
            blocks_in_flight: 0,
            waiting: WaitingFrames::default(),
            waiting_bytes_max,
            unwritten: HashMap::new(),
            notices: PluginNotices::default(),
            content_committed: 0,
            store_committed: 0,
            content_read: 0,
            last_member: 0,
            holes: Vec::new(),
            anchors: None,
            content_before: 0,
            copying: None,
        }
    }

    /// Continues behind an earlier generation.
    pub(crate) fn behind(mut self, base: &GenerationBase) -> Self {
        let [block_count, epoch_count, _] = base.row_counts;
        let (content_bytes, store_bytes) = (base.end.content_bytes, base.end.store_bytes);
        self.next_block = block_count;
        self.open_block.store_start = store_bytes;
        self.open_block.room_start = store_bytes;
        self.extents_frames = epoch_count;
        self.content_committed = content_bytes;
        self.content_read = content_bytes;
        self.content_before = content_bytes;
        self.store_committed = store_bytes;
        self.anchors = Some(AnchorsWriter::new());
        self
    }

    /// Copies these members, instead of writing those that the pipeline reads.
    pub(crate) fn copying(mut self, members: Box<dyn CopiedMembers>) -> Self {
        let (content_bytes, store_bytes) = (self.content_committed, self.store_committed);
        self.copying = Some(Copying::new(members, content_bytes, store_bytes));
        self
    }

    /// The number of files in members that have ended.
    pub(crate) fn file_count(&self) -> u64 {
        self.members.iter().map(|member| member.file_count).sum()
    }

    /// The number of files in members that have ended that were not read.
    pub(crate) fn unchanged_count(&self) -> u64 {
        let unchanged = self.members.iter().map(|member| member.unchanged_count);
        unchanged.sum()
    }

    pub(super) fn push(&mut self, frame: Frame) {
        self.frames_added(frame.bytes_max());
        self.output.push(frame);
    }

    /// Adds anchors of the store, by ascending address.
    pub(crate) fn add_anchors(&mut self, anchors: Vec<Anchor>) {
        let full = self.anchors.as_mut().map(|writer| writer.add(anchors));
        self.push_anchors(full.unwrap_or_default());
    }

    fn push_anchors(&mut self, frames: Vec<AnchorsFrame>) {
        let frames = frames.into_iter().map(Frame::Anchors);
        frames.for_each(|frame| self.push(frame));
    }

    /// Frames other than blocks come next, of at most `bytes_max`.
    fn frames_added(&mut self, bytes_max: u64) {
        self.reach.frames_added(bytes_max);
        self.waiting.add(bytes_max);
    }

    fn start_members(&mut self, member: usize) {
        while self.members_started <= member {
            let member = &mut self.members[self.members_started];
            let frame = Frame::MemberStart(member.begin(self.content_read));
            self.members_started += 1;
            self.push(frame);
        }
    }

    fn member_ends(&mut self, member: usize) -> Vec<Frame> {
        let mut frames = vec![];
        while self.members_ended < member {
            frames.extend(self.members[self.members_ended].end(self.watch));
            self.members_ended += 1;
        }
        frames
    }

    /// Whether `bytes_max` more bytes of frames may wait for a block.
    pub(super) fn may_wait(&self, bytes_max: u64) -> bool {
        self.waiting.epochs.len() <= EPOCHS_WAITING_MAX
            && self.waiting.bytes_max + bytes_max <= self.waiting_bytes_max
    }

    /// Adds frames if they may wait for a block; otherwise returns them.
    fn push_if_they_may_wait(&mut self, frames: Vec<Frame>) -> Vec<Frame> {
        let bytes_max = frames.iter().map(Frame::bytes_max).sum();
        if !self.may_wait(bytes_max) {
            return frames;
        }
        frames.into_iter().for_each(|frame| self.push(frame));
        vec![]
    }

    fn write_extents(&mut self, epoch: EpochExtents, start: &mut dyn FnMut(NativeEncodeJob)) {
        self.epoch_waits(epoch.store_start + epoch.fresh_bytes);
        for part in with_holes(epoch, &std::mem::take(&mut self.holes)) {
            self.write_part(part, start);
        }
    }

    /// An epoch whose fresh bytes end there in the store waits until a block has them.
    pub(super) fn epoch_waits(&mut self, store_end: u64) {
        if store_end > self.open_block.store_start {
            self.waiting.epochs.push_back(WaitingEpoch {
                store_end,
                frames_bytes_max: 0,
            });
        }
    }

    pub(super) fn write_part(&mut self, part: EpochPart, start: &mut dyn FnMut(NativeEncodeJob)) {
        let (references, next_id) = (&mut self.references, &mut self.extents_frames);
        match part {
            EpochPart::Extents(extents) => {
                for job in extents.frames(references, next_id).collect::<Vec<_>>() {
                    self.write_frame(job, EXTENTS_HEADS_BYTES_MAX, start);
                }
            }
            EpochPart::Hole(hole) => {
                let job = hole.hole_frame(references, next_id);
                self.write_frame(job, HOLE_HEADS_BYTES_MAX, start);
            }
        }
    }

    fn write_frame(
        &mut self,
        job: UnencodedExtents,
        heads_bytes_max: u64,
        start: &mut dyn FnMut(NativeEncodeJob),
    ) {
        self.frames_added(heads_bytes_max + job.section_bytes_max());
        let ticket = self.output.reserve();
        start(NativeEncodeJob::Extents { ticket, job });
    }

    pub(super) fn add_page(
        &mut self,
        page: FilledPage,
        epoch: u64,
        start: &mut dyn FnMut(NativeEncodeJob),
    ) {
        self.open_block.has_repeats |= self.has_repeats.contains(&true);
        self.open_block.has_near_repeats |= self.near_repeats;
        self.open_block.bytes += page.bytes.len() as u64;
        self.open_block.pages.push(page.bytes);
        self.end_with_kind(epoch, start);
        let room_used = self.open_block.store_end() - self.open_block.room_start;
        if room_used + PAGE_BYTES as u64 > self.context.tuning.rules.block_bytes {
            self.close_block(epoch, start);
        }
    }

    /// Ends the block where another kind of content began, if codecs are compared on each block.
    ///
    /// The next one has what is left of its room, so that repeats that the match stage leaves to
    /// codecs stay within a block: without that, 60 MB of programs were 5 % larger at level 8.
    fn end_with_kind(&mut self, epoch: u64, start: &mut dyn FnMut(NativeEncodeJob)) {
        let block = &mut self.open_block;
        let pages = block.pages.len();
        let run_pages = run_pages(self.context.tuning.rules.block_bytes);
        let Some(page) = block.pages.last().filter(|_| self.splits_kinds) else {
            return;
        };
        if !block.kinds.add(page, pages, run_pages) {
            return;
        }
        let of_next = block.pages.split_off(pages - run_pages);
        let bytes_of_next: u64 = of_next.iter().map(|page| page.len() as u64).sum();
        block.bytes -= bytes_of_next;
        let next = OpenBlock {
            room_start: block.room_start,
            bytes: bytes_of_next,
            pages: of_next,
            has_repeats: block.has_repeats,
            has_near_repeats: block.has_near_repeats,
            kinds: std::mem::take(&mut block.kinds),
            ..OpenBlock::default()
        };
        self.close_block(epoch, start);
        self.open_block = OpenBlock {
            store_start: self.open_block.store_start,
            first_page: self.open_block.first_page,
            ..next
        };
    }

    pub(super) fn close_block(&mut self, epoch: u64, start: &mut dyn FnMut(NativeEncodeJob)) {
        let next = OpenBlock {
            // Its first page may have begun in the same epoch.
            has_repeats: self.has_repeats.contains(&true),
            store_start: self.open_block.store_end(),
            room_start: self.open_block.store_end(),
            first_page: self.open_block.first_page + self.open_block.pages.len() as u64,
            ..OpenBlock::default()
        };
        let block = std::mem::replace(&mut self.open_block, next);
        if block.pages.is_empty() {
            return;
        }
        let job = UnencodedBlock {
            block_id: self.next_block,
            store_start: block.store_start,
            pages: block.pages,
            has_repeats: block.has_repeats,
            has_near_repeats: block.has_near_repeats,
        };
        self.reach
            .block_filled(epoch, block.store_start, block.bytes);
        self.next_block += 1;
        self.blocks_in_flight += 1;
        let ticket = self.output.reserve();
        start(NativeEncodeJob::Block {
            ticket,
            first_page: block.first_page,
            job,
        });
        self.waiting.closed_up_to(self.open_block.store_start);
    }

    fn block_encoded(&mut self, ticket: Ticket, first_page: u64, block: EncodedBlock) {
        let EncodedBlock {
            frame,
            header,
            copy,
        } = block;
        let copy_bytes = copy.as_ref().map_or(0, CompressedCopy::memory_bytes);
        self.reach
            .block_encoded(header.block_id, frame.frame_bytes(), copy_bytes);
        let unwritten = UnwrittenBlock { first_page, copy };
        self.unwritten.insert(header.block_id, unwritten);
        self.output.fill(ticket, Frame::Block(header, frame));
    }

    fn block_written(&mut self, block: WrittenBlock) -> Option<EncodedPages> {
        self.blocks_in_flight -= 1;
        let WrittenBlock {
            header,
            offset,
            mut frame,
            is_retained,
        } = block;
        self.watch
            .block(&BlockInfo::new(&header, (offset, frame.frame_bytes())));
        let (plan, is_carrying) = (
            &self.context.tuning.plan,
            self.output.is_carrying_decoders(),
        );
        self.notices.tell(&header, plan, is_carrying, self.watch);
        let UnwrittenBlock { first_page, copy } = self.unwritten.remove(&header.block_id)?;
        let checksums = std::mem::take(&mut frame.page_checksums);
        let is_incompressible = header.coding.fallback() == FallbackReason::Incompressible.number();
        if let Some(blocks) = &self.written_blocks {
            let place = (!is_retained).then_some(offset);
            blocks.add(first_page, checksums.len() as u64, header, place, &frame);
        }
        self.context.workspaces.recycle_frame(frame.bytes);
        Some(EncodedPages {
            first_page,
            checksums,
            is_incompressible,
            copy,
        })
    }

    fn report(&self) {
        self.watch.progress(&Progress {
            content_bytes_done: (self.output.content_bytes()).saturating_sub(self.content_before)
                + self.counts.duplicate_bytes.load(Ordering::Relaxed),
            content_bytes_total: self.counts.content_bytes_total,
            archive_bytes: self.output.archive_bytes(),
        });
    }
}

impl Assembly for Assembler<'_> {
    type Encoding = NativeEncoding;

    /// Entries are written with the epoch of their content, however long packing them took.
    fn may_begin(&self, data: &EpochData) -> bool {
        data.segments.iter().all(|segment| {
            let end = segment.offset_in_member + segment.bytes.len() as u64;
            let member = self.members.get(segment.member);
            member.is_none_or(|member| member.has_entries_up_to(end))
        })
    }

    fn epoch_read(&mut self, data: &EpochData) -> Result<()> {
        if self.copying.is_some() {
            // What is read are bytes of the store, and no member's.
            return Ok(());
        }
        let mut at = 0;
        for segment in &data.segments {
            self.start_members(segment.member);
            if segment.hole_bytes > 0 {
                self.members[segment.member].push_hole(segment.hole_bytes)?;
                self.content_read += segment.hole_bytes;
                self.holes.push(Hole {
                    at,
                    length_bytes: segment.hole_bytes,
                });
            }
            self.members[segment.member].push(&segment.hash, &segment.bytes)?;
            self.members[segment.member].push_pieces(&segment.pieces);
            at += segment.bytes.len() as u64;
            self.content_read += segment.bytes.len() as u64;
            self.last_member = segment.member;
        }
        Ok(())
    }

    fn epoch_committed(
        &mut self,
        epoch: u64,
        committed: &mut CommittedEpoch,
        start: &mut dyn FnMut(NativeEncodeJob),
    ) -> Result<()> {
        self.next_epoch = epoch + 1;
        if committed.content_bytes == 0 {
            return Ok(());
        }
        if self.copying.is_some() {
            return self.new_bytes_committed(epoch, committed, start);
        }
        let content_start = self.content_committed;
        let holes_bytes: u64 = self.holes.iter().map(|hole| hole.length_bytes).sum();
        self.content_committed += committed.content_bytes + holes_bytes;
        self.store_committed = committed.store_start + committed.fresh_bytes;
        self.has_repeats = [committed.has_repeats, self.has_repeats[0]];
        self.near_repeats = committed.has_near_repeats;
        let extents = EpochExtents {
            content_start,
            store_start: committed.store_start,
            fresh_bytes: committed.fresh_bytes,
            extents: Arc::new(std::mem::take(&mut committed.extents)),
        };
        self.write_extents(extents, start);
        let mut frames = self.member_ends(self.last_member);
        if let Some(member) = self.members.get(self.last_member) {
            frames.extend(member.next_entries(self.watch));
        }
        let frames = self.push_if_they_may_wait(frames);
        for page in std::mem::take(&mut committed.filled) {
            self.add_page(page, epoch, start);
        }
        if !frames.is_empty() || !self.may_wait(0) {
            if let Some(page) = committed.state.history.take_last_page()? {
                self.add_page(page, epoch, start);
            }
            self.close_block(epoch, start);
        }
        frames.into_iter().for_each(|frame| self.push(frame));
        self.add_anchors(std::mem::take(&mut committed.anchors));
        Ok(())
    }

    fn take_digests(&mut self) -> Option<()> {
        None
    }

    fn digested(&mut self, _hashes: ()) {}

    fn finish_content(
        &mut self,
        last: Option<FilledPage>,
        start: &mut dyn FnMut(NativeEncodeJob),
    ) -> Result<()> {
        if let Some(last) = self.members.len().checked_sub(1) {
            self.start_members(last);
        }
        let ends = self.member_ends(self.members.len());
        let ends = self.push_if_they_may_wait(ends);
        let epoch = self.next_epoch;
        if let Some(page) = last {
            self.add_page(page, epoch, start);
        }
        self.close_block(epoch, start);
        ends.into_iter().for_each(|frame| self.push(frame));
        let rest = self.anchors.as_mut().map(AnchorsWriter::finish);
        self.push_anchors(rest.unwrap_or_default());
        Ok(())
    }

    fn encoded(&mut self, encoded: NativeEncoded) {
        match encoded {
            NativeEncoded::Block {
                ticket,
                first_page,
                block,
            } => self.block_encoded(ticket, first_page, *block),
            NativeEncoded::Extents { ticket, extents } => self.output.fill(
                ticket,
                Frame::Extents(extents.header, extents.sums, extents.frame),
            ),
        }
    }

    fn write_ready(&mut self) -> Result<Vec<EncodedPages>> {
        let mut encoded = vec![];
        while let Some(written) = self.output.write_next()? {
            match written {
                Written::Block(block) => encoded.extend(self.block_written(*block)),
                Written::Extents => self.report(),
                Written::Other => {}
            }
        }
        Ok(encoded)
    }

    fn is_all_written(&self) -> bool {
        self.output.is_empty()
    }

    fn blocks_in_flight(&self) -> usize {
        self.blocks_in_flight
    }

    fn block_start(&self) -> u64 {
        self.open_block.room_start
    }

    fn floor_for(&mut self, epoch: u64, content_bytes: u64) -> Option<u64> {
        let open_bytes = self.store_committed - self.open_block.store_start;
        let bytes_to_completion = self.reach.bytes_to_completion(open_bytes + content_bytes);
        self.reach.floor_for(epoch, bytes_to_completion)
    }
}
