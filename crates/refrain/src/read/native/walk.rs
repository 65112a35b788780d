//! Reads an archive sequentially: checks every frame, decodes content in parallel and delivers it
//! in order.
//!
//! Files and pipes, extraction and verification use the same code. They differ only in where an
//! earlier block comes from when it is needed again: the file, or frames in memory, as many as the
//! archive's reach requires.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use refrain_codec::Workspace;
use refrain_format::{
    BlockHeader, Entry, FrameKind, HeldFrames, Limits, MemberEnd, MemberStart, Payload,
    REACH_UNLIMITED, StreamChecker,
};
use refrain_pool::stages::stage;
use refrain_pool::{BufferPool, Crew, Lane};
use refrain_protect::SEGMENT_BYTES;
use refrain_storage::Source;

use crate::archive_info::BlockInfo;
use crate::damage::CutOff;
use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::progress::{Progress, Watch, file_paths, is_cancelled, next_event};
use crate::read::content_limit::ContentLimit;
use crate::read::content_visitor::{ContentVisitor, EntriesPayload, ONLY_FROM_A_FILE, WalkTotals};
use crate::read::epoch_map::EpochMap;
use crate::read::native::far_references::FarReferences;
use crate::read::native::given_back::GivenBackFrames;
use crate::read::native::part_plans::{PartPlan, PartPlans};
use crate::read::native::pending_member::PendingMember;
use crate::read::native::references::ReferenceHistory;
use crate::read::native::segment_part::{BrokenPart, PartContent, SegmentPart};
use crate::read::native::stated_map::StatedMap;
use crate::read::native::streamed_blocks::StreamedBlocks;
use crate::read::native::walk_memory::{MemoryShares, check_pending, reach_notice};
use crate::read::store_reader::{BlockLocation, Depth, StoreReader};
use crate::read::work_meter::WorkMeter;
use crate::store::decoders::Decoders;
use crate::store::frames::{CheckedFrame, FrameReader};
use crate::store::sections::decode_entries;
use crate::store::workspaces::new_workspace;

/// Progress is reported after each frame, and within an epoch after this many bytes.
const REPORT_BYTES: u64 = 64 << 20;

enum JobResult {
    Frame {
        reader: Box<FrameReader>,
        frame: Result<Option<CheckedFrame>>,
    },
    /// A block was decoded ahead.
    Block {
        decoding: u64,
        location: BlockLocation,
        result: Result<()>,
    },
    Part {
        part: u64,
        decoded: DecodedPart,
    },
}

type DecodedPart = std::result::Result<SegmentPart, Box<BrokenPart>>;

/// The end of an epoch.
struct PlannedEpoch {
    content_end: u64,
    /// The archive offset of the end of the frame that completes it.
    archive_offset: u64,
}

/// Data shared by all workers.
struct WalkContext {
    store: StoreReader,
    meter: Arc<WorkMeter>,
    blocks: Arc<StreamedBlocks>,
    buffers: BufferPool,
}

/// Options of a pass over an archive.
pub(crate) struct WalkOptions {
    pub threads: usize,
    pub memory_bytes: u64,
    pub limits: Limits,
    /// A directory for a pipe's frames that do not fit into memory.
    pub temporary: Option<PathBuf>,
    /// Counts what is decoded.
    pub meter: Arc<WorkMeter>,
    /// For the content of all archives of the file.
    pub content_limit: ContentLimit,
}

/// Reads one archive sequentially and adds to the totals. Returns the reader, positioned after the
/// archive. See the module documentation.
pub(super) fn walk<'env>(
    crew: &Crew<'_, 'env, Event>,
    (reader, decoders): (Box<FrameReader>, Arc<Decoders>),
    (source, given_back): (Option<Arc<dyn Source>>, Option<Arc<GivenBackFrames>>),
    options: &WalkOptions,
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
    totals: &mut WalkTotals,
) -> Result<Box<FrameReader>> {
    let shares = MemoryShares::new(options.memory_bytes, options.threads, source.is_some());
    let temporary = options.temporary.clone();
    let blocks = Arc::new(StreamedBlocks::new(source, options.limits, temporary));
    let context = Arc::new(WalkContext {
        store: StoreReader::new(
            (blocks.clone(), decoders),
            options.limits,
            options.memory_bytes,
            // One shard: the pass needs all of the memory in one place.
            (shares.cache_bytes, u64::MAX),
            options.threads,
        ),
        meter: options.meter.clone(),
        blocks,
        buffers: BufferPool::new(SEGMENT_BYTES, shares.parts_max as usize),
    });
    let mut walk = Walk {
        crew,
        context,
        options,
        visitor,
        watch,
        // The walk keeps more per block than measuring the reach does.
        checker: StreamChecker::measuring_reach(&options.limits),
        held: HeldFrames::new(&options.limits),
        workspace: new_workspace(),
        references: ReferenceHistory::default(),
        reach_bytes: REACH_UNLIMITED,
        content_bytes_total: None,
        plans: PartPlans::new(shares.parts_max),
        epochs: VecDeque::new(),
        planned_end: 0,
        unnamed: VecDeque::new(),
        starts_bytes: 0,
        decoded: BTreeMap::new(),
        next_delivered: 0,
        shares,
        parts_in_flight: 0,
        decoding: BTreeMap::new(),
        decoding_bytes: 0,
        next_decoding: 0,
        blocks_bytes: 0,
        open: VecDeque::new(),
        ends: VecDeque::new(),
        archive_start: reader.archive_start(),
        reader: Some(reader),
        at_end: false,
        totals: WalkTotals::default(),
        reported_bytes: 0,
        before: *totals,
        error_behind: None,
        given_back,
    };
    let ended = walk.run();
    if let Err(error) = &ended
        && error.kind == ErrorKind::Damaged
        && walk.visitor.takes_broken()
    {
        walk.hand_over()?;
    }
    *totals = ended?;
    let lost = || Error::new(ErrorKind::Internal, "the reader of frames is lost");
    walk.reader.ok_or_else(lost)
}

/// The crew's completion type.
pub(crate) struct Event(JobResult);

struct Walk<'a, 'scope, 'env> {
    crew: &'a Crew<'scope, 'env, Event>,
    context: Arc<WalkContext>,
    options: &'a WalkOptions,
    visitor: &'a mut dyn ContentVisitor,
    watch: &'a dyn Watch,
    checker: StreamChecker,
    /// Frames waiting for blocks.
    held: HeldFrames<CheckedFrame>,
    workspace: Workspace,
    references: ReferenceHistory,
    reach_bytes: u64,
    content_bytes_total: Option<u64>,
    /// Parts not being decoded yet.
    plans: PartPlans,
    /// Epochs with undecoded parts. Recorded only if the reach is limited.
    epochs: VecDeque<PlannedEpoch>,
    /// The end of the content whose extents were read.
    planned_end: u64,
    /// Files whose content up to an offset is not delivered yet, by the names of their members.
    unnamed: VecDeque<(u64, Vec<u8>, Vec<Vec<u8>>)>,
    /// The memory of the members in `open`.
    starts_bytes: u64,
    /// Decoded parts waiting for their turn.
    decoded: BTreeMap<u64, DecodedPart>,
    next_delivered: u64,
    shares: MemoryShares,
    /// The number of parts being decoded, or decoded and not delivered.
    parts_in_flight: u64,
    /// The numbers of blocks being decoded ahead of the parts that need them, by job number.
    decoding: BTreeMap<u64, u64>,
    decoding_bytes: u64,
    next_decoding: u64,
    /// The decoded size of all blocks so far.
    blocks_bytes: u64,
    /// Members begun and not delivered completely, in order.
    open: VecDeque<PendingMember>,
    /// The known ends of the first members in `open`.
    ends: VecDeque<MemberEnd>,
    reader: Option<Box<FrameReader>>,
    at_end: bool,
    totals: WalkTotals,
    /// The content bytes of the latest report.
    reported_bytes: u64,
    /// Totals of earlier archives.
    before: WalkTotals,
    /// Where the archive starts in the file.
    archive_start: u64,
    /// Damage in or after the archive. Everything before it is delivered before this is returned.
    error_behind: Option<Error>,
    /// What the archive gave back to the file system.
    given_back: Option<Arc<GivenBackFrames>>,
}

impl Walk<'_, '_, '_> {
    fn run(&mut self) -> Result<WalkTotals> {
        loop {
            self.read_next();
            match next_event(self.crew, self.watch)? {
                Some(event) => self.handle(event?.0)?,
                None if self.at_end => break,
                None => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "the reader makes no progress",
                    ));
                }
            }
            self.deliver()?;
            // Zeros are ready at once, without an event.
            while self.start_parts() && !is_cancelled(self.watch) {
                self.deliver()?;
            }
            if is_cancelled(self.watch) {
                return Err(Error::cancelled());
            }
        }
        if let Some(error) = (self.error_behind).take_if(|_| !self.checker.is_complete()) {
            return Err(error);
        }
        let is_decoded = self.plans.parts_if_empty() == Some(self.next_delivered);
        if !is_decoded || !self.open.is_empty() {
            return Err(Error::new(ErrorKind::Internal, "content was not delivered"));
        }
        self.checker.check_observed_slices()?;
        if let Some(error) = self.error_behind.take() {
            return Err(error);
        }
        Ok(WalkTotals {
            content_bytes: self.before.content_bytes + self.totals.content_bytes,
            view_bytes: (self.before.view_bytes).saturating_add(self.totals.view_bytes),
            archive_bytes: self.archive_offset(),
            members: self.before.members + self.totals.members,
            entries: self.before.entries + self.totals.entries,
        })
    }

    /// Where the next frame starts in the file.
    fn archive_offset(&self) -> u64 {
        self.archive_start + self.checker.offset()
    }

    /// Submits the reading of the next frame, if the limits permit or the delivery needs it.
    fn read_next(&mut self) {
        let decoding = self.decoding.len() as u64;
        let has_room = self.may_plan_more()
            && decoding < self.shares.blocks_max
            && (decoding == 0 || self.decoding_bytes < self.shares.pending_bytes_max);
        if self.at_end || !(has_room || self.needs_member_end()) {
            return;
        }
        let Some(mut reader) = self.reader.take() else {
            return;
        };
        self.crew.submit(Lane::Input, move || {
            let frame = reader.next();
            Event(JobResult::Frame { reader, frame })
        });
    }

    /// Whether to plan further extents. More than a few segments are planned only if further blocks
    /// can be decoded at the same time: those of slow codecs take a second each, and the extents
    /// between two of them may produce hundreds of megabytes of content.
    fn may_plan_more(&self) -> bool {
        let Some(first) = self.plans.front() else {
            return true;
        };
        if self.plans.has_room() {
            return true;
        }
        // A pipe's history, and blocks within a limited reach, are kept until the parts that need
        // them are decoded.
        let needs_only_maps = self.can_reread() && self.reach_bytes == REACH_UNLIMITED;
        let ahead_bytes = self.blocks_bytes - first.blocks_bytes;
        self.context.store.has_slow_blocks()
            && needs_only_maps
            && ahead_bytes < self.context.store.decoded_bytes_max() / 4
            && self.plans.maps_bytes() < self.options.memory_bytes / 16
    }

    /// Whether frames can be read again.
    fn can_reread(&self) -> bool {
        self.context.blocks.can_reread()
    }

    fn handle(&mut self, event: JobResult) -> Result<()> {
        match event {
            JobResult::Frame { reader, frame } => {
                self.reader = Some(reader);
                let used = frame.and_then(|frame| match frame {
                    Some(frame) => {
                        let offset = frame.offset;
                        self.frame(frame).map_err(|error| error.at_offset(offset))
                    }
                    None => {
                        self.end();
                        Ok(())
                    }
                });
                match used {
                    // Everything before the damage is delivered.
                    Err(error)
                        if error.kind == ErrorKind::Damaged || self.checker.is_complete() =>
                    {
                        self.error_behind.get_or_insert(error);
                        self.end();
                    }
                    used => used?,
                }
            }
            JobResult::Block {
                decoding,
                location,
                result,
            } => {
                self.decoding.remove(&decoding);
                self.decoding_bytes -= location.raw_bytes;
                self.context.blocks.release_payload(location.block);
                match result {
                    // The part that needs the block meets the error again, in its turn.
                    Err(error) if error.kind == ErrorKind::Damaged => {
                        self.error_behind.get_or_insert(error);
                    }
                    result => result?,
                }
            }
            JobResult::Part { part, decoded } => {
                self.decoded.insert(part, decoded);
            }
        }
        Ok(())
    }

    /// No more frames come. Those waiting for blocks are used as far as their blocks exist.
    fn end(&mut self) {
        self.at_end = true;
        if !self.checker.is_complete() {
            let at = self.archive_offset();
            let cut = || Error::new(ErrorKind::Damaged, CutOff { at }).at_offset(at);
            self.error_behind.get_or_insert_with(cut);
        }
        self.held.release_all();
        while let Some(frame) = self.held.next() {
            if self.use_frame(frame).is_err() {
                return;
            }
        }
    }

    /// Checks the next frame in file order, and uses the frames that waited for it.
    fn frame(&mut self, frame: CheckedFrame) -> Result<()> {
        let (header, payload_bytes) = (frame.header, frame.payload.clone());
        let payload = Payload::parse(header.kind, &payload_bytes, &self.options.limits)?;
        let at = frame.offset.saturating_sub(self.archive_start);
        self.checker.skip_appendix(at);
        self.checker.feed(&header, &payload)?;
        if header.kind == FrameKind::Decoder {
            self.context.store.decoders().add(&payload_bytes)?;
        }
        if let Some(tail) = &frame.tail {
            self.checker.tail(tail)?;
        }
        self.held.feed(&header, &payload, frame)?;
        while let Some(frame) = self.held.next() {
            let offset = frame.offset;
            let used = self.use_frame(frame);
            used.map_err(|error| error.at_offset(offset))?;
        }
        self.report();
        Ok(())
    }

    /// Uses a frame that needs no further block.
    fn use_frame(&mut self, frame: CheckedFrame) -> Result<()> {
        let payload_bytes = frame.payload.clone();
        match Payload::parse(frame.header.kind, &payload_bytes, &self.options.limits)? {
            Payload::Archive(head) => {
                // A generation may refer to what no reach promises.
                if !self.can_reread() {
                    self.reach_bytes = head.reach_bytes;
                }
                self.warn_of_reach();
                let (source, decoders) = (
                    self.context.blocks.source(),
                    self.context.store.decoders().clone(),
                );
                let far = FarReferences::new(source, self.options.limits, decoders);
                self.references = ReferenceHistory::new(head.reference_window, Some(far));
            }
            Payload::MemberStart(start) => self.member_start(start)?,
            Payload::Block { header: head, .. } => self.block(&frame, &head)?,
            Payload::Extents { header: head, data } => {
                let decoders = self.context.store.decoders();
                let parsed = StatedMap::parse(&mut self.workspace, decoders, &head, data);
                let (stated, mut sums) = parsed?;
                if let Some(far) = self.references.far() {
                    far.add(head.content_start, frame.offset);
                }
                let extents_max = self.shares.extents_max(&self.options.limits);
                let maps_bytes = self.shares.maps_bytes;
                let references = &mut self.references;
                let map = references.resolve(stated, &mut sums, extents_max, maps_bytes)?;
                self.checker.observe_epoch(&sums)?;
                // The epoch is completed by the latest frame.
                self.epoch(map, self.archive_offset())?;
            }
            Payload::MemberEnd(end) => self.ends.push_back(end),
            Payload::Entries { header: head, data } => {
                let (decoders, limits) = (self.context.store.decoders(), &self.options.limits);
                let entries = decode_entries(&mut self.workspace, decoders, &head, data, limits)?;
                self.entries(head.member_id, &entries, &frame)?;
            }
            Payload::Generation(_) if !self.visitor.takes_generations() => {
                return Err(Error::new(ErrorKind::Unsupported, ONLY_FROM_A_FILE));
            }
            Payload::Generation(_) => {
                if let Some(far) = self.references.far() {
                    far.generation_begins(self.planned_end);
                }
            }
            Payload::Index(_) | Payload::End { .. } | Payload::Catalog(_) | Payload::Skipped => {}
        }
        Ok(())
    }

    /// Warns early that a pipe may need more memory than available. Whether it does depends on the
    /// unknown length of the archive.
    fn warn_of_reach(&self) {
        let allowed = self.options.memory_bytes / 2;
        let is_long = self.reach_bytes != REACH_UNLIMITED && self.reach_bytes > allowed;
        if is_long && !self.can_reread() && !self.context.blocks.spills() {
            self.watch.notice(&reach_notice(self.reach_bytes, allowed));
        }
    }

    /// Checks entries, and keeps them until their member is complete.
    fn entries(&mut self, member_id: u64, entries: &[Entry], frame: &CheckedFrame) -> Result<()> {
        self.totals.entries += entries.len() as u64;
        let first_id = self.open.front().map_or(0, |first| first.start.member_id);
        let at = usize::try_from(member_id.saturating_sub(first_id)).unwrap_or(usize::MAX);
        if let Some(member) = self.open.get_mut(at) {
            if self.watch.names_files() {
                let (name, paths) = (member.start.name.clone(), file_paths(entries));
                self.unnamed.push_back((self.planned_end, name, paths));
            }
            let (before, label) = (member.memory_bytes(), member.label());
            if let Some(list) = &mut member.entries {
                let payload = EntriesPayload {
                    bytes: frame.payload.clone(),
                    decoders: self.context.store.decoders().clone(),
                };
                list.add(payload, entries)
                    .map_err(|error| error.in_file(label))?;
            }
            self.starts_bytes = self.starts_bytes + member.memory_bytes() - before;
        }
        self.check_pending("entries", self.starts_bytes)
    }

    fn member_start(&mut self, start: MemberStart) -> Result<()> {
        self.content_bytes_total = match (self.content_bytes_total, start.content_bytes_hint) {
            (None, hint) if start.member_id == 0 => hint,
            (Some(total), Some(hint)) => total.checked_add(hint),
            _ => None,
        };
        let hash = start.hash_kind();
        self.plans.member_starts(start.content_start, hash);
        let member = PendingMember::new(start, self.options.memory_bytes);
        self.starts_bytes += member.memory_bytes();
        self.open.push_back(member);
        self.check_pending("members", self.starts_bytes)
    }

    fn check_pending(&self, what: &str, bytes: u64) -> Result<()> {
        check_pending(what, bytes, self.options.memory_bytes)
    }

    /// Records a block, and decodes it ahead of the extents that need it.
    fn block(&mut self, frame: &CheckedFrame, head: &BlockHeader) -> Result<()> {
        let location = self.context.blocks.add(head, frame);
        self.blocks_bytes += location.raw_bytes;
        if frame.is_given_back {
            return Ok(());
        }
        self.watch.block(&BlockInfo::new(
            head,
            (frame.offset, frame.header.frame_bytes()),
        ));
        let retained = self.evict_unreachable(frame.offset + frame.header.frame_bytes());
        let retained = if !self.context.blocks.spills() {
            retained
        } else {
            let bytes_max = self.shares.frames_bytes_max(self.options.memory_bytes);
            self.context.blocks.spill_all_but(bytes_max)?;
            retained.min(bytes_max)
        };
        if retained > self.options.memory_bytes / 2 {
            return Err(Error::limit(format!(
                "from a pipe, {} of this archive must remain in memory, the limit is {}: raise the memory limit, name a \
                 directory for temporary content, or read it from a file",
                mebibytes(retained),
                mebibytes(self.options.memory_bytes / 2)
            )));
        }
        if !self.can_reread() {
            let memory_bytes = self.options.memory_bytes;
            let cache_bytes = self.shares.cache_beside(retained, memory_bytes);
            self.context.store.set_cache_bytes(cache_bytes);
        }
        self.decode_ahead(location);
        Ok(())
    }

    /// Submits the decoding of a block that will be needed. Otherwise the first part that needs it
    /// decodes it while other parts wait.
    fn decode_ahead(&mut self, location: BlockLocation) {
        // A second job for the same block would occupy a worker while it waits for the first.
        if self.decoding.values().any(|&block| block == location.block) {
            return;
        }
        let (context, decoding) = (self.context.clone(), self.next_decoding);
        self.next_decoding += 1;
        self.decoding.insert(decoding, location.block);
        self.decoding_bytes += location.raw_bytes;
        self.crew.submit(Lane::Normal, move || {
            let opened = context.store.open(
                &location,
                location.raw_bytes,
                Depth::Whole,
                Some(&context.meter),
            );
            Event(JobResult::Block {
                decoding,
                location,
                result: opened.map(|_| ()),
            })
        });
    }

    /// Evicts blocks out of reach at `archive_offset`, for a pipe. Returns how many of the latest
    /// archive bytes must be kept.
    fn evict_unreachable(&mut self, archive_offset: u64) -> u64 {
        let blocks = &self.context.blocks;
        if self.reach_bytes != REACH_UNLIMITED {
            let is_delivered =
                |epoch: &mut PlannedEpoch| epoch.content_end <= self.totals.content_bytes;
            while self.epochs.pop_front_if(is_delivered).is_some() {}
            // Undecoded parts need the blocks within reach of their own extents.
            let oldest = self.epochs.front().map(|epoch| epoch.archive_offset);
            let from = oldest.unwrap_or(archive_offset);
            blocks.evict_before(from.saturating_sub(self.reach_bytes));
        }
        // Blocks kept for parts in flight do not count: whether an archive is refused must not
        // depend on timing.
        let first = blocks.first_retained_offset().unwrap_or(archive_offset);
        (archive_offset - first).min(self.reach_bytes)
    }

    /// Plans the content of an epoch.
    fn epoch(&mut self, map: Arc<EpochMap>, completed_at: u64) -> Result<()> {
        let content = map.content();
        let content_bytes = self.before.content_bytes.saturating_add(content.end);
        self.options.content_limit.check(content_bytes)?;
        for location in (self.context.store).blocks_to_prefetch(&map, content.clone())? {
            self.decode_ahead(location);
        }
        self.planned_end = content.end;
        if self.reach_bytes != REACH_UNLIMITED {
            self.epochs.push_back(PlannedEpoch {
                content_end: content.end,
                archive_offset: completed_at,
            });
        }
        let (after_decoding, blocks_bytes) = (self.next_decoding, self.blocks_bytes);
        self.plans.add_epoch(map, after_decoding, blocks_bytes);
        self.check_pending("extents", self.plans.maps_bytes())
    }

    /// Submits the decoding of parts up to the limit. Returns whether some need none.
    fn start_parts(&mut self) -> bool {
        let mut has_zeros = false;
        while self.parts_in_flight < self.shares.parts_max {
            let first_decoding = self
                .decoding
                .first_key_value()
                .map_or(u64::MAX, |(&first, _)| first);
            let Some(plan) = self.plans.pop_if_after(first_decoding) else {
                break;
            };
            let PartPlan {
                part,
                map,
                content,
                segment_at,
                is_zeros,
                ..
            } = plan;
            self.parts_in_flight += 1;
            if is_zeros {
                let zeros = SegmentPart::zeros(content.end - content.start);
                self.decoded.insert(part, Ok(zeros));
                has_zeros = true;
                continue;
            }
            let context = self.context.clone();
            self.crew.submit(Lane::Normal, move || {
                let buffers = &context.buffers;
                let store = (&context.store, &*context.meter);
                let _stage = stage("assemble", content.end - content.start);
                let decoded = SegmentPart::decode(store, buffers, &map, content, segment_at);
                Event(JobResult::Part { part, decoded })
            });
        }
        has_zeros
    }

    /// The content offset of the end of the first pending member, if known.
    fn front_end(&self) -> Option<u64> {
        let next = self.open.get(1).map(|next| next.start.content_start);
        let stated = self.ends.front().zip(self.open.front());
        next.or(stated
            .map(|(end, member)| member.start.content_start.saturating_add(end.content_bytes)))
    }

    /// Whether all content of the first pending member is delivered and only its MemberEnd frame is
    /// missing.
    fn needs_member_end(&self) -> bool {
        self.ends.is_empty()
            && self
                .front_end()
                .is_some_and(|end| end <= self.totals.content_bytes)
    }

    /// Delivers the content that is ready, in order.
    fn deliver(&mut self) -> Result<()> {
        while let Some(front) = self.open.front_mut() {
            if !front.is_started {
                front.is_started = true;
                let start = front.start.clone();
                self.visitor.start(&start)?;
            }
            if self
                .front_end()
                .is_some_and(|end| end <= self.totals.content_bytes)
            {
                let Some(end) = self.ends.pop_front() else {
                    return Ok(());
                };
                self.deliver_end(&end)?;
            } else {
                let Some(decoded) = self.decoded.remove(&self.next_delivered) else {
                    return Ok(());
                };
                self.next_delivered += 1;
                self.parts_in_flight -= 1;
                match decoded {
                    Ok(decoded) => self.deliver_part(decoded)?,
                    Err(broken) => {
                        self.visitor.content(&broken.prefix)?;
                        return Err(self.error_behind.take().unwrap_or(broken.error));
                    }
                }
            }
        }
        Ok(())
    }

    /// Passes on what is known of the members cut short by damage.
    fn hand_over(&mut self) -> Result<()> {
        while let Some(member) = self.open.pop_front() {
            if !member.is_started {
                self.visitor.start(&member.start)?;
            }
            let entries = member.entries.map(|entries| entries.into_payloads());
            self.visitor
                .broken(&member.start, entries.unwrap_or_default())?;
        }
        Ok(())
    }

    fn deliver_part(&mut self, decoded: SegmentPart) -> Result<()> {
        let content_at = self.totals.content_bytes;
        let damaged = |message: String| Error::damaged(message).at_content(content_at);
        let member = self
            .open
            .front_mut()
            .ok_or_else(|| damaged("content belongs to no member".into()))?;
        if !member.is_given_back {
            decoded
                .hash_into(&mut member.hasher)
                .map_err(|error| damaged(error.to_string()))?;
        }
        self.totals.content_bytes += decoded.length_bytes;
        let stage = stage("deliver", decoded.length_bytes);
        match decoded.bytes {
            PartContent::GivenBack => {
                member.is_given_back = true;
                let (given_back, id) = (&self.given_back, member.start.member_id);
                let checked = given_back.as_ref().map(|frames| frames.check_gone(id));
                checked
                    .unwrap_or_else(|| Err(Error::given_back()))
                    .map_err(|error| error.at_content(content_at).in_file(member.label()))?;
                self.visitor.given_back(decoded.length_bytes)?;
            }
            PartContent::Zeros => self.visitor.zeros(decoded.length_bytes)?,
            PartContent::Bytes(bytes) => {
                let delivered = self.visitor.content(&bytes);
                self.context.buffers.put(bytes);
                delivered?;
            }
        }
        drop(stage);
        if self.totals.content_bytes - self.reported_bytes >= REPORT_BYTES {
            self.report();
        }
        Ok(())
    }

    fn deliver_end(&mut self, end: &MemberEnd) -> Result<()> {
        let Some(member) = self.open.pop_front() else {
            return Err(Error::damaged("a member ends that has not begun"));
        };
        self.starts_bytes -= member.memory_bytes();
        let label = member.label();
        member.compare(end)?;
        let PendingMember { start, entries, .. } = member;
        let entries = match entries {
            None => Vec::new(),
            Some(entries) => {
                let decoding = (&mut self.workspace, &**self.context.store.decoders());
                let read = entries.finish(end, decoding, &self.options.limits);
                let (payloads, slices) = read.map_err(|error| error.in_file(label))?;
                self.checker.observe_slices(end.member_id, &slices);
                payloads
            }
        };
        self.totals.members += 1;
        self.totals.view_bytes = self.totals.view_bytes.saturating_add(end.view_bytes);
        self.name_files();
        if !start.kind.has_entries() {
            self.watch.files(&start.name, &[Vec::new()]);
        }
        self.visitor.end(&start, end, entries)
    }

    /// Names the files whose content is delivered.
    fn name_files(&mut self) {
        let delivered = self.totals.content_bytes;
        while let Some((_, name, paths)) =
            (self.unnamed).pop_front_if(|(end, ..)| *end <= delivered)
        {
            self.watch.files(&name, &paths);
        }
    }

    fn report(&mut self) {
        self.name_files();
        self.reported_bytes = self.totals.content_bytes;
        let total = self.content_bytes_total;
        self.watch.progress(&Progress {
            content_bytes_done: self.before.content_bytes + self.totals.content_bytes,
            content_bytes_total: total.map(|total| self.before.content_bytes + total),
            archive_bytes: self.archive_offset(),
        });
    }
}
