//! An archive from front to back: every frame read and checked, content made in parallel, written in order.
//!
//! The same walk serves files and pipes, extraction and verification. What differs is only where an older block comes from when
//! it is needed again: from the file, or from frames kept in memory, as many as the archive promises to need.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use refrain_codec::Workspace;
use refrain_format::{
    BlockHeader, Entry, FrameKind, Limits, MemberEnd, MemberStart, Payload, REACH_UNLIMITED,
    StreamChecker, unpack_entries,
};
use refrain_pool::stages::stage;
use refrain_pool::{BufferPool, Crew, Lane, Lock, crew};
use refrain_protect::{ContentHasher, SEGMENT_BYTES};
use refrain_storage::Source;

use crate::archive_info::BlockInfo;
use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::content_visitor::{ContentVisitor, WalkTotals};
use crate::read::epoch_map::EpochMap;
use crate::read::native::block_frame::decode_block_frame;
use crate::read::native::digest_check::DigestCheck;
use crate::read::native::piece::{Made, MadePiece};
use crate::read::store_reader::{
    BlockDecoder, BlockPlace, DecodeResources, DecodedBlock, Depth, StoreReader, codec_share_bytes,
};
use crate::store::coding::decode_section;
use crate::store::frames::{ArchiveFeed, CheckedFrame, FrameReader, limits_for, read_frame_at};

/// A block that went by.
struct SeenBlock {
    place: BlockPlace,
    frame_bytes: u64,
    /// Kept in memory until it was opened; or, for a pipe, while it is within reach.
    payload: Option<Arc<Vec<u8>>>,
}

/// The blocks that went by so far.
pub(crate) struct SeenBlocks {
    /// Reads a block again; `None` for a pipe.
    source: Option<Arc<dyn Source>>,
    limits: Limits,
    seen: Lock<VecDeque<SeenBlock>>,
}

impl SeenBlocks {
    fn new(source: Option<Arc<dyn Source>>, limits: Limits) -> SeenBlocks {
        SeenBlocks {
            source,
            limits,
            seen: Lock::default(),
        }
    }

    fn add(&self, head: &BlockHeader, frame: &CheckedFrame) -> BlockPlace {
        let place = BlockPlace {
            block: head.block_id,
            store_start: head.store_start,
            raw_bytes: head.raw_bytes,
            frame_offset: frame.offset,
        };
        let payload = Some(frame.payload.clone());
        self.seen.lock().push_back(SeenBlock {
            place,
            frame_bytes: frame.header.frame_bytes(),
            payload,
        });
        place
    }

    /// The block was opened and need not be kept, if it can be read again.
    fn opened(&self, block: u64) {
        let mut seen = self.seen.lock();
        let first = seen.front().map_or(0, |first| first.place.block);
        if self.source.is_some()
            && let Some(seen) = block
                .checked_sub(first)
                .and_then(|index| seen.get_mut(index as usize))
        {
            seen.payload = None;
        }
    }

    /// Forgets blocks that begin before `archive_offset`, for a pipe.
    fn forget_before(&self, archive_offset: u64) {
        let mut seen = self.seen.lock();
        while self.source.is_none()
            && seen
                .front()
                .is_some_and(|block| block.place.frame_offset < archive_offset)
        {
            seen.pop_front();
        }
    }

    /// The archive's first byte that has to be kept, for a pipe.
    fn first_kept(&self) -> Option<u64> {
        let seen = self.seen.lock();
        let first = seen.front().filter(|_| self.source.is_none());
        first.map(|block| block.place.frame_offset)
    }

    /// The payload of a block's frame, its checksum checked.
    fn payload(&self, place: &BlockPlace) -> Result<Arc<Vec<u8>>> {
        let seen = self.seen.lock();
        let first = seen.front().map_or(0, |first| first.place.block);
        let block = place
            .block
            .checked_sub(first)
            .and_then(|index| seen.get(index as usize));
        let block =
            block.ok_or_else(|| Error::damaged("the block is out of the promised reach"))?;
        if let Some(payload) = &block.payload {
            return Ok(payload.clone());
        }
        let frame_bytes = block.frame_bytes;
        drop(seen);
        let source = self
            .source
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a payload was not kept"))?;
        let frame = read_frame_at(
            &**source,
            place.frame_offset,
            FrameKind::Block,
            Some(frame_bytes),
            &self.limits,
        )?;
        Ok(frame.payload)
    }
}

impl BlockDecoder for SeenBlocks {
    fn locate(&self, offset_in_store: u64) -> Option<BlockPlace> {
        let seen = self.seen.lock();
        let after = seen.partition_point(|block| block.place.store_start <= offset_in_store);
        let place = seen.get(after.checked_sub(1)?)?.place;
        (offset_in_store - place.store_start < place.raw_bytes).then_some(place)
    }

    fn decode(
        &self,
        place: &BlockPlace,
        wanted: u64,
        resources: &DecodeResources,
    ) -> Result<DecodedBlock> {
        decode_block_frame(&self.payload(place)?, place, wanted, resources)
    }
}

/// What a job reports.
enum Kind {
    Frame {
        reader: Box<FrameReader>,
        frame: Result<Option<CheckedFrame>>,
    },
    /// A block was opened: its number and its bytes.
    Block {
        opening: u64,
        place: Result<BlockPlace>,
    },
    Piece {
        piece: u64,
        made: Result<MadePiece>,
    },
}

/// A member whose content is given away, or will be.
struct OpenMember {
    start: MemberStart,
    hasher: ContentHasher,
    is_started: bool,
}

/// A piece of content that is to be made: part of one segment of one member.
struct PiecePlan {
    piece: u64,
    map: Arc<EpochMap>,
    content: Range<u64>,
    /// Where it begins in its member, if it is a whole segment of it.
    segment_at: Option<u64>,
    /// Jobs below this number open the blocks that it needs.
    after_opening: u64,
    /// Bytes of all blocks that were read before its extents.
    blocks_bytes: u64,
}

/// Where an epoch ends.
struct PlannedEpoch {
    /// Its pieces have lower numbers.
    pieces_end: u64,
    /// Its frame ends here in the archive.
    archive_offset: u64,
}

/// What workers share.
struct Shared {
    store: StoreReader,
    blocks: Arc<SeenBlocks>,
    buffers: BufferPool,
}

/// Settings of a walk.
pub(crate) struct WalkOptions {
    pub threads: usize,
    pub memory_bytes: u64,
    pub limits: Limits,
}

/// How the memory of a walk is shared out.
struct Share {
    /// Pieces being made or waiting to be given away, each up to a segment.
    pieces_max: u64,
    /// Blocks being opened.
    blocks_max: u64,
    /// Bytes of theirs from which on no further one is read.
    pending_bytes_max: u64,
    /// Opened blocks.
    cache_bytes: u64,
}

impl Share {
    fn new(options: &WalkOptions, reads_again: bool) -> Share {
        let memory_bytes = options.memory_bytes;
        let threads = options.threads as u64;
        let pieces_max = (memory_bytes / 8 / SEGMENT_BYTES as u64).clamp(2, 8 * threads + 8);
        // Two of the largest blocks that a level makes, at the default budget: one after the other would leave cores idle.
        let pending_bytes_max = memory_bytes / 8;
        let maps_bytes = memory_bytes / 16;
        let past_bytes = if reads_again { 0 } else { memory_bytes / 2 };
        let others = maps_bytes + codec_share_bytes(memory_bytes) + past_bytes;
        // Of what a pipe's past does not take of its half, some goes to opened blocks as well; see `Walk::block`.
        let used = pieces_max * SEGMENT_BYTES as u64 + pending_bytes_max + others;
        Share {
            pieces_max,
            blocks_max: 2 * threads + 2,
            pending_bytes_max,
            cache_bytes: memory_bytes.saturating_sub(used),
        }
    }
}

/// Walks over an archive with a crew of its own.
pub(crate) fn walk_archive(
    feed: ArchiveFeed,
    options: &ReadOptions,
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let limits = limits_for(options.memory_bytes);
    let source = feed.source();
    let mut visitor = DigestCheck::new(visitor, source.as_deref(), &limits)?;
    let reader = FrameReader::open(feed, limits)?;
    let threads = options.threads.max(1);
    let options = WalkOptions {
        threads,
        memory_bytes: options.memory_bytes,
        limits,
    };
    crew(threads, |crew| {
        walk(crew, reader, source, &options, &mut visitor, watch)
    })
}

/// Walks over an archive. See the module's text.
fn walk<'env>(
    crew: &Crew<'_, 'env, Event>,
    reader: FrameReader,
    source: Option<Arc<dyn Source>>,
    options: &WalkOptions,
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let share = Share::new(options, source.is_some());
    let blocks = Arc::new(SeenBlocks::new(source, options.limits));
    let shared = Arc::new(Shared {
        store: StoreReader::new(
            blocks.clone(),
            options.limits,
            options.memory_bytes,
            share.cache_bytes,
            options.threads,
        ),
        blocks,
        buffers: BufferPool::new(SEGMENT_BYTES, share.pieces_max as usize),
    });
    let mut walk = Walk {
        crew,
        shared,
        options,
        visitor,
        watch,
        checker: StreamChecker::new(&options.limits),
        workspace: Workspace::new(),
        reach_bytes: REACH_UNLIMITED,
        content_bytes_total: None,
        plans: VecDeque::new(),
        epochs: VecDeque::new(),
        maps_bytes: 0,
        starts_bytes: 0,
        made: BTreeMap::new(),
        next_piece: 0,
        next_given: 0,
        share,
        pieces_in_flight: 0,
        opening: BTreeMap::new(),
        opening_bytes: 0,
        next_opening: 0,
        blocks_bytes: 0,
        begun: VecDeque::new(),
        open: VecDeque::new(),
        ends: VecDeque::new(),
        reader: Some(Box::new(reader)),
        at_end: false,
        totals: WalkTotals::default(),
    };
    walk.run()
}

/// The event type of a walk's crew.
pub(crate) struct Event(Kind);

struct Walk<'a, 'scope, 'env> {
    crew: &'a Crew<'scope, 'env, Event>,
    shared: Arc<Shared>,
    options: &'a WalkOptions,
    visitor: &'a mut dyn ContentVisitor,
    watch: &'a dyn Watch,
    checker: StreamChecker,
    workspace: Workspace,
    reach_bytes: u64,
    content_bytes_total: Option<u64>,
    /// Pieces whose making has not begun, in the order of content.
    plans: VecDeque<PiecePlan>,
    /// Epochs of which pieces may not be made yet; only kept if the reach is limited.
    epochs: VecDeque<PlannedEpoch>,
    /// Memory of the maps that `plans` hold, and of the names in `open`.
    maps_bytes: u64,
    starts_bytes: u64,
    /// Pieces that are made and wait for their turn.
    made: BTreeMap<u64, MadePiece>,
    next_piece: u64,
    next_given: u64,
    share: Share,
    /// Pieces being made, or made and not given away.
    pieces_in_flight: u64,
    /// Blocks being opened ahead of the pieces that need them, by the numbers of these jobs; with the numbers of the blocks.
    opening: BTreeMap<u64, u64>,
    opening_bytes: u64,
    next_opening: u64,
    /// Bytes of all blocks that were read, when open.
    blocks_bytes: u64,
    /// Where members begin in the content space, from the one that is being cut into pieces on.
    begun: VecDeque<u64>,
    /// Members that have begun and were not given away whole, in order.
    open: VecDeque<OpenMember>,
    /// Ends that are known, of the first of the open members.
    ends: VecDeque<MemberEnd>,
    reader: Option<Box<FrameReader>>,
    at_end: bool,
    totals: WalkTotals,
}

impl Walk<'_, '_, '_> {
    fn run(&mut self) -> Result<WalkTotals> {
        loop {
            self.read_next();
            match self.crew.next() {
                Some(event) => self.take(event?.0)?,
                None if self.at_end => break,
                None => return Err(Error::new(ErrorKind::Internal, "the walk stands still")),
            }
            self.give()?;
            self.start_pieces();
            if is_cancelled(self.watch) {
                return Err(Error::cancelled());
            }
        }
        if !self.checker.is_complete() {
            let message = "the archive ends without its End frame: it was cut off";
            return Err(Error::damaged(message).at_offset(self.checker.offset()));
        }
        if self.next_given != self.next_piece || !self.open.is_empty() {
            return Err(Error::new(
                ErrorKind::Internal,
                "content was not given away",
            ));
        }
        self.totals.archive_bytes = self.checker.offset();
        Ok(self.totals)
    }

    /// Lets the next frame be read, if there is room for what may come of it, or if nothing can be given away before it comes.
    fn read_next(&mut self) {
        let opening = self.opening.len() as u64;
        let has_room = self.may_plan_more()
            && opening < self.share.blocks_max
            && (opening == 0 || self.opening_bytes < self.share.pending_bytes_max);
        if self.at_end || !(has_room || self.waits_for_end()) {
            return;
        }
        let Some(mut reader) = self.reader.take() else {
            return;
        };
        self.crew.submit(Lane::Input, move || {
            let frame = reader.next();
            Event(Kind::Frame { reader, frame })
        });
    }

    /// Pieces of more than a few segments are planned only if that lets further blocks be opened meanwhile: those of slow
    /// codecs take a second each, and the extents between two of them may make hundreds of megabytes of content.
    fn may_plan_more(&self) -> bool {
        let Some(first) = self.plans.front() else {
            return true;
        };
        if (self.plans.len() as u64) < self.share.pieces_max {
            return true;
        }
        // A pipe's past, and blocks within a promised reach, are kept until the pieces that need them are made.
        let costs_only_maps = self.reads_again() && self.reach_bytes == REACH_UNLIMITED;
        let ahead_bytes = self.blocks_bytes - first.blocks_bytes;
        self.shared.store.is_packing()
            && costs_only_maps
            && ahead_bytes < self.shared.store.open_bytes_max() / 4
            && self.maps_bytes < self.options.memory_bytes / 16
    }

    /// Whether frames can be read once more.
    fn reads_again(&self) -> bool {
        self.shared.blocks.source.is_some()
    }

    fn take(&mut self, event: Kind) -> Result<()> {
        match event {
            Kind::Frame { reader, frame } => {
                self.reader = Some(reader);
                match frame? {
                    Some(frame) => {
                        let offset = frame.offset;
                        self.frame(frame).map_err(|error| error.at_offset(offset))?;
                    }
                    None => self.at_end = true,
                }
            }
            Kind::Block { opening, place } => {
                let place = place?;
                self.opening.remove(&opening);
                self.opening_bytes -= place.raw_bytes;
                self.shared.blocks.opened(place.block);
            }
            Kind::Piece { piece, made } => {
                self.made.insert(piece, made?);
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: CheckedFrame) -> Result<()> {
        // Whatever follows the End frame is refused by its own name.
        self.checker.check_nothing_follows(&frame_bytes(&frame))?;
        let payload_bytes = frame.payload.clone();
        let payload = Payload::parse(frame.header.kind, &payload_bytes, &self.options.limits)?;
        self.checker.feed(&frame.header, &payload)?;
        match payload {
            Payload::Archive(head) => self.reach_bytes = head.reach_bytes,
            Payload::MemberStart(start) => self.member_start(start)?,
            Payload::Block { header: head, .. } => self.block(&frame, &head)?,
            Payload::Extents { header: head, data } => {
                let (map, sums) = EpochMap::open(&mut self.workspace, &head, data)?;
                self.checker.observe_epoch(&sums)?;
                let frame_end = frame.offset + frame.header.frame_bytes();
                self.epoch(Arc::new(map), frame_end)?;
            }
            Payload::MemberEnd(end) => self.ends.push_back(end),
            Payload::Entries { header: head, data } => {
                let raw = decode_section(
                    &mut self.workspace,
                    &head.coding,
                    head.packed_raw_bytes,
                    data,
                )?;
                let entries: Vec<Entry> = unpack_entries(&head, &raw)?;
                self.totals.entries += entries.len() as u64;
            }
            Payload::Index(_) | Payload::End(_) | Payload::Skipped => {}
        }
        self.report();
        Ok(())
    }

    fn member_start(&mut self, start: MemberStart) -> Result<()> {
        self.content_bytes_total = match (self.content_bytes_total, start.content_bytes_hint) {
            (None, hint) if start.member_id == 0 => hint,
            (Some(total), Some(hint)) => total.checked_add(hint),
            _ => None,
        };
        self.starts_bytes += (start.name.len() + size_of::<OpenMember>()) as u64;
        self.check_waiting("members", self.starts_bytes)?;
        self.begun.push_back(start.content_start);
        self.open.push_back(OpenMember {
            start,
            hasher: ContentHasher::new(),
            is_started: false,
        });
        Ok(())
    }

    /// Refuses an archive that wants too much to be kept before it can be given away.
    fn check_waiting(&self, what: &str, bytes: u64) -> Result<()> {
        let allowed = self.options.memory_bytes / 8;
        if bytes <= allowed {
            return Ok(());
        }
        Err(Error::limit(format!(
            "{what} buffered ahead of the output need {} of memory, the limit is {}: raise the memory limit",
            mebibytes(bytes),
            mebibytes(allowed)
        )))
    }

    /// Keeps a block, and opens it ahead of the extents that will need it.
    fn block(&mut self, frame: &CheckedFrame, head: &BlockHeader) -> Result<()> {
        let place = self.shared.blocks.add(head, frame);
        self.blocks_bytes += place.raw_bytes;
        self.watch.block(&BlockInfo::new(
            head,
            (frame.offset, frame.header.frame_bytes()),
        ));
        let kept = self.forget(frame.offset + frame.header.frame_bytes());
        if kept > self.options.memory_bytes / 2 {
            return Err(Error::limit(format!(
                "from a pipe, {} of this archive must remain in memory, the limit is {}: raise the memory limit, or \
                 read it from a file",
                mebibytes(kept),
                mebibytes(self.options.memory_bytes / 2)
            )));
        }
        if !self.reads_again() {
            let left = (self.options.memory_bytes / 8 * 3).saturating_sub(kept);
            self.shared
                .store
                .set_cache_bytes(self.share.cache_bytes + left);
        }
        self.open_ahead(place);
        Ok(())
    }

    /// Lets a block be opened that will be needed: a piece that came first would open it too, and others would wait for it.
    fn open_ahead(&mut self, place: BlockPlace) {
        // A second job for the same block would only wait for the first one, and keep a worker from others.
        if self.opening.values().any(|&block| block == place.block) {
            return;
        }
        let (shared, opening) = (self.shared.clone(), self.next_opening);
        self.next_opening += 1;
        self.opening.insert(opening, place.block);
        self.opening_bytes += place.raw_bytes;
        self.crew.submit(Lane::Normal, move || {
            let opened = shared.store.open(&place, place.raw_bytes, Depth::Whole);
            let place = opened.map(|_| place);
            Event(Kind::Block { opening, place })
        });
    }

    /// Forgets blocks that are out of reach at `archive_offset`, for a pipe. Returns how many of the archive's latest bytes
    /// have to be kept.
    fn forget(&mut self, archive_offset: u64) -> u64 {
        let blocks = &self.shared.blocks;
        if self.reach_bytes != REACH_UNLIMITED {
            let is_given = |epoch: &mut PlannedEpoch| epoch.pieces_end <= self.next_given;
            while self.epochs.pop_front_if(is_given).is_some() {}
            // Pieces that are not made yet need what was in reach at their own extents.
            let oldest = self.epochs.front().map(|epoch| epoch.archive_offset);
            let from = oldest.unwrap_or(archive_offset);
            blocks.forget_before(from.saturating_sub(self.reach_bytes));
        }
        // What pieces still under way hold is not counted: whether an archive is refused must not depend on timing.
        let first = blocks.first_kept().unwrap_or(archive_offset);
        (archive_offset - first).min(self.reach_bytes)
    }

    /// Cuts an epoch into pieces that lie inside segments of their members.
    fn epoch(&mut self, map: Arc<EpochMap>, frame_end: u64) -> Result<()> {
        self.maps_bytes += map.memory_bytes() as u64;
        self.check_waiting("extents", self.maps_bytes)?;
        for place in self.shared.store.missing(&map) {
            self.open_ahead(place);
        }
        let content = map.content();
        let mut at = content.start;
        while at < content.end {
            // The member that holds `at` is the last one that begins at or before it.
            while self.begun.get(1).is_some_and(|&next| next <= at) {
                self.begun.pop_front();
            }
            let member_start = self.begun.front().copied().unwrap_or(0);
            let member_end = self.begun.get(1).copied().unwrap_or(u64::MAX);
            let offset_in_member = at - member_start;
            let inside_segment = offset_in_member % SEGMENT_BYTES as u64;
            let segment_left = SEGMENT_BYTES as u64 - inside_segment;
            let end = (at + segment_left).min(member_end).min(content.end);
            let is_whole = inside_segment == 0 && (end - at == segment_left || end == member_end);
            let plan = PiecePlan {
                piece: self.next_piece,
                map: map.clone(),
                content: at..end,
                segment_at: is_whole.then_some(offset_in_member),
                after_opening: self.next_opening,
                blocks_bytes: self.blocks_bytes,
            };
            self.next_piece += 1;
            self.plans.push_back(plan);
            at = end;
        }
        if self.reach_bytes != REACH_UNLIMITED {
            self.epochs.push_back(PlannedEpoch {
                pieces_end: self.next_piece,
                archive_offset: frame_end,
            });
        }
        Ok(())
    }

    /// Lets pieces be made, as many as there is room for.
    fn start_pieces(&mut self) {
        while self.pieces_in_flight < self.share.pieces_max {
            let first_opening = self
                .opening
                .first_key_value()
                .map_or(u64::MAX, |(&first, _)| first);
            let is_ready = |plan: &mut PiecePlan| plan.after_opening <= first_opening;
            let Some(plan) = self.plans.pop_front_if(is_ready) else {
                return;
            };
            let PiecePlan {
                piece,
                map,
                content,
                segment_at,
                ..
            } = plan;
            if self
                .plans
                .front()
                .is_none_or(|next| !Arc::ptr_eq(&next.map, &map))
            {
                self.maps_bytes -= map.memory_bytes() as u64;
            }
            let shared = self.shared.clone();
            self.pieces_in_flight += 1;
            self.crew.submit(Lane::Normal, move || {
                let Shared { store, buffers, .. } = &*shared;
                let _stage = stage("put together", content.end - content.start);
                let made = MadePiece::make(store, buffers, &map, content, segment_at);
                Event(Kind::Piece { piece, made })
            });
        }
    }

    /// Where the content of the first open member ends, as far as is known.
    fn front_end(&self) -> Option<u64> {
        let next = self.open.get(1).map(|next| next.start.content_start);
        let stated = self.ends.front().zip(self.open.front());
        next.or(stated
            .map(|(end, member)| member.start.content_start.saturating_add(end.content_bytes)))
    }

    /// All content of the first open member was given away, and only its MemberEnd frame is missing.
    fn waits_for_end(&self) -> bool {
        self.ends.is_empty()
            && self
                .front_end()
                .is_some_and(|end| end <= self.totals.content_bytes)
    }

    /// Gives away what is ready, in order.
    fn give(&mut self) -> Result<()> {
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
                self.give_end(&end)?;
            } else {
                let Some(made) = self.made.remove(&self.next_given) else {
                    return Ok(());
                };
                self.next_given += 1;
                self.pieces_in_flight -= 1;
                self.give_piece(made)?;
            }
        }
        Ok(())
    }

    fn give_piece(&mut self, made: MadePiece) -> Result<()> {
        let content_at = self.totals.content_bytes;
        let damaged = |message: String| Error::damaged(message).at_content(content_at);
        let member = self
            .open
            .front_mut()
            .ok_or_else(|| damaged("content belongs to no member".into()))?;
        made.hash_into(&mut member.hasher)
            .map_err(|error| damaged(error.to_string()))?;
        self.totals.content_bytes += made.length_bytes;
        let _stage = stage("give", made.length_bytes);
        match made.bytes {
            Made::Zeros => self.visitor.zeros(made.length_bytes),
            Made::Bytes(bytes) => {
                let given = self.visitor.content(&bytes);
                self.shared.buffers.put(bytes);
                given
            }
        }
    }

    fn give_end(&mut self, end: &MemberEnd) -> Result<()> {
        let Some(OpenMember { start, hasher, .. }) = self.open.pop_front() else {
            return Err(Error::damaged("a member ends that has not begun"));
        };
        self.starts_bytes -= (start.name.len() + size_of::<OpenMember>()) as u64;
        let name = String::from_utf8_lossy(&start.name).into_owned();
        if hasher.content_bytes() != end.content_bytes {
            let message = format!(
                "{} bytes came, {} are stated",
                hasher.content_bytes(),
                end.content_bytes
            );
            return Err(Error::damaged(message).in_file(name));
        }
        if hasher.value() != end.blake3 {
            return Err(Error::damaged(
                "the content has not the BLAKE3 hash that the archive states",
            )
            .in_file(name));
        }
        self.totals.members += 1;
        self.visitor.end(&start, end)
    }

    fn report(&self) {
        self.watch.progress(&Progress {
            content_bytes_done: self.totals.content_bytes,
            content_bytes_total: self.content_bytes_total,
            archive_bytes: self.checker.offset(),
        });
    }
}

fn frame_bytes(frame: &CheckedFrame) -> Vec<u8> {
    // Only whether anything follows matters; an intact header was read, so its kind is what is told.
    refrain_format::complete_frame(
        frame.header.kind,
        frame.header.skippable,
        &[],
        frame.header.sequence,
    )
}
