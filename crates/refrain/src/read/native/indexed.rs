//! A native archive opened for random access, by its index or by a scan.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::{
    ArchiveEnd, ArchiveHeader, BlockHeader, ExtentTotals, ExtentsHeader, FrameKind, IndexEpoch,
    IndexList, IndexMember, Limits, MAGIC, REFERENCE_DEPTH_MAX, member_hash,
};
use refrain_pool::Lock;
use refrain_pool::stages::stage;
use refrain_protect::HASH_BYTES;
use refrain_storage::{NamedRange, Source};

use crate::archive_info::{ArchiveInfo, BlockInfo};
use crate::damage::{DamagedPart, DamagedPlace, distinct, in_member};
use crate::error::{Error, ErrorKind, Result};
use crate::generation::GenerationChoice;
use crate::options::ReadOptions;
use crate::read::archive_layout::{ContentExtent, EachMemberContent, LayoutBase, StoreBlock};
use crate::read::damage_log::DamageLog;
use crate::read::decode_memory::StoreMemory;
use crate::read::epoch_map::EpochMap;
use crate::read::generations::Generations;
use crate::read::native::block_frame::decode_block_frame;
use crate::read::native::entry_frames::scanned_slices;
use crate::read::native::found_frames::ScannedArchive;
use crate::read::native::frame_index::{FrameIndex, MemberOutline};
use crate::read::native::generations::{lists_names, open_generations, showing};
use crate::read::native::given_back::GivenBackFrames;
use crate::read::native::growth::Growth;
use crate::read::native::index_reading::{FoundArchive, read_index};
use crate::read::native::latest_maps::LatestMaps;
use crate::read::native::map_cache::MapCache;
use crate::read::native::packed_map::PackedMap;
use crate::read::native::resolve::{resolve_range, sources_of_range};
use crate::read::native::row_sums::RowSums;
use crate::read::native::salvage::DamagedBlocks;
use crate::read::opened_archive::{Layout, OpenedArchive, Provable, Remains, Serving, no_member};
use crate::read::proven_members::ProvenMembers;
use crate::read::read_control::{ReadControl, Run};
use crate::read::read_statistics::ReadStatistics;
use crate::read::store_reader::{
    BlockDecoder, BlockLocation, DecodeResources, DecodedBlock, Depth, StoreReader,
};
use crate::read::tree::decoded_frames::DecodedFrames;
use crate::read::work_meter::WorkMeter;
use crate::store::carried_modules::DecoderFrames;
use crate::store::decoders::{Coders, Decoders};
use crate::store::frames::{limits_for, read_frame_at, read_named_frame_at};
use crate::store::named_block::NamedBlock;

/// A native archive, opened for random access. See [`Archive`](crate::Archive).
pub(crate) struct IndexedArchive {
    pub(super) source: Arc<dyn Source>,
    pub(super) limits: Limits,
    options: ReadOptions,
    pub(super) head: ArchiveHeader,
    pub(super) end: ArchiveEnd,
    pub(super) index: Arc<FrameIndex>,
    pub(super) store: Arc<StoreReader>,
    /// Decoded frames of entries that are read in slices.
    pub(super) entry_frames: Arc<Lock<DecodedFrames>>,
    maps: Arc<Lock<MapCache>>,
    /// The memory for maps where it is not shared, in bytes.
    maps_bytes: u64,
    damaged: Arc<DamagedBlocks>,
    /// Damage found by reads.
    pub(super) log: Arc<DamageLog>,
    /// What a scan found missing.
    lost: Vec<DamagedPlace>,
    /// The generations, if something was added to the archive.
    pub(super) generations: Option<Generations>,
    /// What of it was given back to the file system.
    pub(super) given_back: Arc<GivenBackFrames>,
}

/// The maximum content whose references are resolved at once, in bytes. It bounds the memory for an
/// epoch of many tiny extents.
pub(super) const RESOLVED_BYTES_MAX: u64 = 1 << 20;

/// With at most this many blocks it is first checked whether all are in memory, so that nothing can
/// be prefetched: a small store may have many extents.
const FEW_BLOCKS: u64 = 64;

struct IndexedBlocks {
    source: Arc<dyn Source>,
    index: Arc<FrameIndex>,
    /// Blocks of which a part may remain.
    damaged: Arc<DamagedBlocks>,
    log: Arc<DamageLog>,
    limits: Limits,
    given_back: Arc<GivenBackFrames>,
}

impl IndexedBlocks {
    /// The payload of a block's frame, with its checksum verified.
    fn payload(&self, location: &BlockLocation) -> Result<Arc<Vec<u8>>> {
        let mut stage = stage("read", 0);
        let row = match self.source.cache() {
            Some(_) => self.index.block_at(location.store_start)?,
            None => None,
        };
        let named = row.and_then(NamedBlock::of);
        let frame = read_named_frame_at(
            &*self.source,
            location.frame_offset,
            FrameKind::Block,
            Some(location.frame_bytes),
            named.as_ref().map(|named| named as &dyn NamedRange),
            &self.limits,
        )?;
        stage.add_bytes(frame.payload.len() as u64);
        Ok(frame.payload)
    }
}

impl BlockDecoder for IndexedBlocks {
    fn locate(&self, offset_in_store: u64) -> Result<Option<BlockLocation>> {
        let found = self.index.block_at(offset_in_store)?;
        Ok(found.map(|(number, block)| BlockLocation {
            block: number,
            store_start: block.store_start,
            raw_bytes: block.raw_bytes,
            frame_offset: block.frame_offset,
            frame_bytes: block.frame_bytes,
            coders: Coders {
                codec: block.codec,
                filter_ids: block.filter_ids,
            },
        }))
    }

    fn decode(
        &self,
        location: &BlockLocation,
        wanted: u64,
        resources: &DecodeResources,
        meter: Option<&WorkMeter>,
    ) -> Result<DecodedBlock> {
        if self.given_back.has(location) {
            return Err(Error::given_back());
        }
        // Even if it was damaged before: a network may deliver the right bytes the next time.
        let held = resources.hold_memory(location, wanted);
        let payload = self.payload(location);
        let is_frame_intact = payload.is_ok();
        let decoded = payload
            .and_then(|payload| decode_block_frame(&payload, location, wanted, resources, meter));
        drop(held);
        let failed = match decoded {
            Err(error) if error.kind == ErrorKind::Damaged => error,
            decoded => {
                self.damaged.remove(location.frame_offset);
                return decoded;
            }
        };
        let start = location.frame_offset;
        self.log.add(DamagedPlace {
            part: DamagedPart::Block(location.block),
            bytes: start..start.saturating_add(location.frame_bytes),
        });
        // Its data is what was written: the fault is that of a plug-in or module, and what such a
        // one says and leaves is not to be used in pieces.
        if is_frame_intact && !resources.decoders.decoded_by(&location.coders).is_engine() {
            self.damaged.lose(location.frame_offset);
            return Err(failed);
        }
        self.damaged.decode(&*self.source, location, resources)
    }

    fn next_start(&self, offset_in_store: u64) -> Option<u64> {
        self.index.next_block_start(offset_in_store)
    }

    fn is_given_back(&self, location: &BlockLocation) -> bool {
        self.given_back.has(location)
    }

    fn check_range(&self, location: &BlockLocation, range: Range<u64>) -> Result<()> {
        self.damaged.check(location, range)
    }
}

impl IndexedArchive {
    /// Opens an archive by the index at its end. It uses one of `shares` equal shares of the
    /// memory.
    ///
    /// # Errors
    /// `Damaged` if its first and last frames contradict each other; `Unsupported` for a later
    /// version; `Limit` if its index exceeds the memory limit; `Io`.
    pub(crate) fn open(
        source: Arc<dyn Source>,
        archive: &FoundArchive,
        options: &ReadOptions,
        shares: usize,
    ) -> Result<IndexedArchive> {
        if archive.is_whole {
            let (source, ordinary) = archive.expanded(&*source)?;
            let mut opened = Self::open(source, &ordinary, options, shares)?;
            opened.end.archive_bytes = archive.bytes.end - archive.bytes.start;
            return Ok(opened);
        }
        let limits = limits_for(options.memory_bytes);
        let first = read_frame_at(
            &*source,
            archive.bytes.start + MAGIC.len() as u64,
            FrameKind::Archive,
            None,
            &limits,
        )?;
        let head = ArchiveHeader::parse(&first.payload)
            .map_err(|error| Error::from(error).at_offset(first.offset))?;
        let memory_bytes = options.own_memory_bytes() / shares.max(1) as u64;
        let mut index = read_index(&source, archive, &limits, memory_bytes)?;
        let generations = open_generations(&*source, archive, &options.generation, &limits)?;
        if let Some(generations) = &generations {
            let has_names = lists_names(generations, &archive.end);
            index = index.showing(generations.members(), has_names);
        }
        let given_back = match &generations {
            Some(generations) => GivenBackFrames::of(&generations.catalog, archive.bytes.start),
            None => GivenBackFrames::default(),
        };
        let frames = DecoderFrames::Chain(archive.bytes.start, archive.end.last_decoder);
        let decoders = Arc::new(Decoders::for_archive(&source, frames, options));
        let opened = Self::with_index(
            (source, decoders),
            options,
            shares,
            (head, archive.end),
            index,
            (DamagedBlocks::default(), given_back),
        );
        Ok(IndexedArchive {
            generations,
            ..opened
        })
    }

    /// Opens what a scan found of an archive, with one of `shares` equal shares of the memory.
    /// Ranges whose blocks and extents exist can be read; others fail as `Damaged`. Of a damaged
    /// block with an intact head, the pieces of 64 KiB with correct checksums can be read. A member
    /// with a lost end has a hash of zeros.
    ///
    /// # Errors
    /// From the frames of entries, which are put in path order; `Io`.
    pub(crate) fn from_scan(
        source: Arc<dyn Source>,
        scanned: ScannedArchive,
        options: &ReadOptions,
        shares: usize,
    ) -> Result<IndexedArchive> {
        let ScannedArchive {
            head,
            mut index,
            block_ids,
            open_members,
            damaged_blocks,
            given_back,
            decoder_frames,
            end,
            lost,
            bytes,
        } = scanned;
        let limits = limits_for(options.memory_bytes);
        let frames = DecoderFrames::At(decoder_frames);
        let decoders = Arc::new(Decoders::for_archive(&source, frames, options));
        let (rules, memory_bytes) = ((&*decoders, &limits), options.memory_bytes);
        index.slices = scanned_slices(&source, &mut index, rules, memory_bytes)?;
        let end = end.unwrap_or_else(|| ArchiveEnd {
            content_bytes: sum(index.epochs.iter().map(|epoch| epoch.content_bytes)),
            store_bytes: sum(index.blocks.iter().map(|block| block.raw_bytes)),
            frame_count: 0,
            member_count: index.members.len() as u64,
            archive_bytes: bytes.end - bytes.start,
            totals: ExtentTotals::default(),
            fallback_count: 0,
            root_hash: [0; 32],
            generation: None,
            last_decoder: None,
        });
        let index = FrameIndex::from_rows(index, block_ids, open_members);
        let lacking = (DamagedBlocks::new(damaged_blocks), given_back);
        let source = (source, decoders);
        let opened = Self::with_index(source, options, shares, (head, end), index, lacking);
        Ok(IndexedArchive { lost, ..opened })
    }

    /// Adds what a scan found damaged or missing.
    pub(crate) fn with_lost(self, lost: Vec<DamagedPlace>) -> IndexedArchive {
        IndexedArchive { lost, ..self }
    }

    fn with_index(
        (source, decoders): (Arc<dyn Source>, Arc<Decoders>),
        options: &ReadOptions,
        shares: usize,
        (head, end): (ArchiveHeader, ArchiveEnd),
        index: FrameIndex,
        (damaged, given_back): (DamagedBlocks, GivenBackFrames),
    ) -> IndexedArchive {
        let limits = limits_for(options.memory_bytes);
        let memory_bytes = options.own_memory_bytes() / shares.max(1) as u64;
        let index = Arc::new(index);
        let (damaged, given_back) = (Arc::new(damaged), Arc::new(given_back));
        let log = Arc::new(DamageLog::default());
        let blocks = IndexedBlocks {
            source: source.clone(),
            index: index.clone(),
            damaged: damaged.clone(),
            log: log.clone(),
            limits,
            given_back: given_back.clone(),
        };
        let (cache_bytes, maps_bytes) = (memory_bytes / 8 * 3, memory_bytes / 16);
        IndexedArchive {
            store: Arc::new(StoreReader::new(
                (Arc::new(blocks), decoders),
                limits,
                memory_bytes,
                (cache_bytes, head.block_bytes_max),
                options.threads,
            )),
            entry_frames: Arc::new(Lock::new(DecodedFrames::new(memory_bytes))),
            maps: Arc::new(Lock::new(MapCache::new(
                maps_bytes,
                cache_bytes + maps_bytes,
            ))),
            maps_bytes,
            damaged,
            log,
            lost: Vec::new(),
            generations: None,
            given_back,
            source,
            limits,
            options: options.clone(),
            head,
            end,
            index,
        }
    }

    /// A meter for one random read, or for one verb that reads much.
    pub(crate) fn meter(&self) -> WorkMeter {
        WorkMeter::new(&self.options)
    }

    /// Fills `buffer` with the content of a range.
    pub(super) fn read_content(
        &self,
        range: Range<u64>,
        buffer: &mut [u8],
        depth: Depth,
        meter: &WorkMeter,
    ) -> Result<()> {
        let mut at = range.start;
        let mut latest = LatestMaps::default();
        while at < range.end {
            let stated = latest.get(at, || self.map_of(at, meter))?;
            let expanded = stated.expanded();
            let of_epoch = expanded.as_ref().and_then(|map| map.without_references());
            let stop = match of_epoch {
                Some(_) => stated.content().end.min(range.end),
                None => range.end.min(at + RESOLVED_BYTES_MAX),
            };
            let piece = &mut buffer[(at - range.start) as usize..(stop - range.start) as usize];
            match of_epoch {
                Some(map) => self.store.fill(map, at, piece, depth, Some(meter))?,
                None => {
                    let map = self.resolved_beside(&mut latest, at..stop, meter)?;
                    self.store.fill(&map, at, piece, depth, Some(meter))?;
                }
            }
            at = stop;
        }
        Ok(())
    }

    /// The blocks much needed by the content starting at `content_at`, and where that content ends:
    /// with its epoch, or at `end`.
    pub(super) fn blocks_to_prefetch(
        &self,
        content_at: u64,
        end: u64,
        meter: &WorkMeter,
    ) -> Result<(Vec<BlockLocation>, u64)> {
        let block_count = self.index.row_count(IndexList::Blocks);
        let has_few = (1..=FEW_BLOCKS).contains(&block_count);
        if has_few && self.store.holds_first(block_count) {
            return Ok((vec![], end));
        }
        let end = self.map_of(content_at, meter)?.content().end.min(end);
        let map = self.resolved(content_at..end, meter)?;
        let blocks = self.store.blocks_to_prefetch(&map, content_at..end)?;
        Ok((blocks, end))
    }

    /// Keeps decoded frames of entries of at most so many bytes, from now on.
    pub(crate) fn set_entries_bytes(&self, bytes: u64) {
        *self.entry_frames.lock() = DecodedFrames::within(bytes);
    }

    /// The member with this id, of any generation.
    ///
    /// # Errors
    /// From the index.
    pub(crate) fn member_with_id(&self, member_id: u64) -> Result<Option<IndexMember>> {
        self.index.member_with_id(member_id)
    }

    pub(super) fn outline(&self, member: usize) -> Result<MemberOutline> {
        let outline = self.index.outline(member)?;
        outline.ok_or_else(|| no_member(member, self.index.member_count()))
    }

    /// Reads a member's content at `offset` into `buffer`.
    pub(super) fn read_metered(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
        meter: &WorkMeter,
    ) -> Result<usize> {
        let row = self.outline(member)?;
        let offset = offset.min(row.content_bytes);
        let left = row.content_bytes - offset;
        let count = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let start = row.content_start + offset;
        let depth = Depth::for_read(count);
        let (range, buffer) = (start..start + count as u64, &mut buffer[..count]);
        self.read_content(range, buffer, depth, meter)?;
        Ok(count)
    }

    /// The map of a content range, without references.
    pub(crate) fn resolved(&self, range: Range<u64>, meter: &WorkMeter) -> Result<EpochMap> {
        self.resolved_beside(&mut LatestMaps::default(), range, meter)
    }

    /// As [`IndexedArchive::resolved`], for one of many ranges.
    fn resolved_beside(
        &self,
        latest: &mut LatestMaps,
        range: Range<u64>,
        meter: &WorkMeter,
    ) -> Result<EpochMap> {
        let extents_max = self.limits.extents_per_frame_max;
        let map_of = &mut |at| latest.get(at, || self.map_of(at, meter));
        resolve_range(range, REFERENCE_DEPTH_MAX, extents_max, map_of)
    }

    /// Content to refer to instead of this range, which has the same bytes: offsets and lengths. A
    /// part that is a reference is replaced by its source.
    ///
    /// # Errors
    /// `Limit` if a reference to it would be too deep; from reading the archive.
    pub(crate) fn sources(&self, range: Range<u64>, meter: &WorkMeter) -> Result<Vec<(u64, u64)>> {
        let extents_max = self.limits.extents_per_frame_max;
        sources_of_range(range, extents_max, &mut |at| self.map_of(at, meter))
    }

    /// The map of the epoch with the content at `content_at`.
    pub(super) fn map_of(&self, content_at: u64, meter: &WorkMeter) -> Result<Arc<PackedMap>> {
        let missing =
            || Error::damaged("no intact frame describes this content").at_content(content_at);
        let (number, row) = self.index.epoch_at(content_at)?.ok_or_else(missing)?;
        if let Some(map) = self.maps.lock().get(number) {
            return Ok(map);
        }
        meter.before_waiting()?;
        let map = Arc::new(self.noted(self.read_map(&row, meter), &row)?);
        let bytes_for_blocks = self.maps.lock().add(number, map.clone());
        self.store.set_cache_bytes(bytes_for_blocks);
        Ok(map)
    }
}

impl IndexedArchive {
    fn read_map(&self, row: &IndexEpoch, meter: &WorkMeter) -> Result<PackedMap> {
        let offset = row.frame_offset;
        let frame = read_frame_at(
            &*self.source,
            offset,
            FrameKind::Extents,
            Some(row.frame_bytes),
            &self.limits,
        )?;
        let open = || {
            let (head, data) = ExtentsHeader::parse(&frame.payload, &self.limits)?;
            row.check_head(&head)?;
            meter.decode(head.packed_raw_bytes, offset, row.frame_bytes)?;
            let decoders = self.store.decoders();
            let workspaces = self.store.workspaces();
            workspaces.with(|space| PackedMap::parse(&mut space.codec, decoders, &head, data))
        };
        open().map_err(|error: Error| error.at_offset(offset))
    }

    /// Records a damaged map of an epoch.
    fn noted<T>(&self, read: Result<T>, row: &IndexEpoch) -> Result<T> {
        if let Err(error) = &read
            && error.kind == ErrorKind::Damaged
        {
            let start = row.frame_offset;
            self.log.add(DamagedPlace {
                part: DamagedPart::Extents,
                bytes: start..start.saturating_add(row.frame_bytes),
            });
        }
        read
    }
}

impl Serving for IndexedArchive {
    fn for_each_run(
        &self,
        member: usize,
        range: Range<u64>,
        each: &mut dyn FnMut(Run) -> bool,
    ) -> Result<()> {
        self.runs_of(member, range, each)
    }

    fn prefetch(&self, member: usize, range: Range<u64>, control: &ReadControl) -> Result<u64> {
        self.decode_ahead(member, range, control)
    }

    fn read_statistics(&self) -> ReadStatistics {
        self.store.counters.snapshot()
    }

    fn block_bytes_max(&self) -> u64 {
        self.head.block_bytes_max
    }

    fn share_memory(&mut self, memory: &StoreMemory) {
        if let Some(store) = Arc::get_mut(&mut self.store) {
            store.share_memory(memory);
        }
    }

    fn set_cache_bytes(&self, bytes: u64, maps_bytes_max: u64) {
        let maps_bytes_max = self.maps_bytes + maps_bytes_max;
        let mut maps = self.maps.lock();
        let bytes_for_blocks = maps.set_limits(maps_bytes_max, self.maps_bytes + bytes);
        self.store.set_cache_bytes(bytes_for_blocks);
    }

    fn trim_cache(&self) {
        self.store.trim_cache();
    }
}

impl Layout for IndexedArchive {
    /// The properties of the archive, from its index. Reads no block.
    fn info(&self) -> Result<ArchiveInfo> {
        let sums = RowSums::from_index(&self.index)?;
        let totals = self.end.totals;
        Ok(ArchiveInfo {
            format_version: self.head.version,
            level: self.head.level,
            memory_bytes: self.head.memory_budget_bytes,
            archive_bytes: self.end.archive_bytes,
            content_bytes: sums.view_bytes,
            store_bytes: self.end.store_bytes,
            extents: sums.extents,
            extents_frame_bytes: sums.extents_frame_bytes,
            entries_frame_bytes: sums.entries_frame_bytes,
            matched_bytes: totals.matched_bytes.saturating_add(sums.derived_bytes),
            run_bytes: totals.fill_bytes,
            reach_bytes: totals.reach_needed_bytes,
            members: self.index.member_count(),
            archives: 1,
            root_hash: self.root_hash(),
            codecs: sums.codecs.finish(),
            decoders: self.store.decoders().list().unwrap_or_default(),
            fallbacks: self.end.fallback_count,
            block_bytes_max: sums.block_bytes_max,
            given_back_bytes: self.given_back.frame_bytes(),
            lrzip: None,
        })
    }

    /// All blocks, from the headers of their frames.
    ///
    /// # Errors
    /// As [`IndexedArchive::read_at`].
    fn for_each_block(&self, each: &mut dyn FnMut(BlockInfo) -> Result<()>) -> Result<()> {
        self.index.for_each_block(&mut |row| {
            let (offset, bytes) = (row.frame_offset, row.frame_bytes);
            if self.damaged.contains(offset) || self.given_back.contains(offset) {
                return Ok(());
            }
            let frame = read_frame_at(
                &*self.source,
                offset,
                FrameKind::Block,
                Some(bytes),
                &self.limits,
            )?;
            let (head, _) = BlockHeader::parse(&frame.payload, &self.limits)
                .map_err(|error| Error::from(error).at_offset(offset))?;
            each(BlockInfo::new(&head, (offset, bytes)))
        })
    }

    fn for_each_extent(&self, each: &mut dyn FnMut(ContentExtent) -> Result<()>) -> Result<()> {
        self.extents_from(LayoutBase::default(), each)
    }

    fn for_each_store_block(&self, each: &mut dyn FnMut(StoreBlock) -> Result<()>) -> Result<()> {
        self.blocks_from(LayoutBase::default(), each)
    }

    fn for_each_member_content(&self, each: &mut EachMemberContent<'_>) -> Result<()> {
        self.contents_from(LayoutBase::default(), each)
    }

    fn generations(&self) -> Option<&Generations> {
        self.generations.as_ref()
    }

    fn is_frame_given_back(&self, archive_offset: u64) -> bool {
        self.given_back.contains(archive_offset)
    }

    fn has_layers(&self) -> Result<bool> {
        self.keeps_layers()
    }

    fn at_generation(&self, number: u16) -> Result<Option<Box<dyn OpenedArchive>>> {
        let found = self.with_generation(number)?;
        Ok(found.map(|archive| Box::new(archive) as _))
    }

    fn read_store(&self, offset_in_store: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = self.end.store_bytes.saturating_sub(offset_in_store);
        let count = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        self.read_store_at(offset_in_store, &mut buffer[..count])?;
        Ok(count)
    }
}

impl IndexedArchive {
    /// The archive with another generation shown: index, caches and counters are shared. `None` if
    /// nothing was ever added.
    fn with_generation(&self, number: u16) -> Result<Option<IndexedArchive>> {
        let Some(generations) = &self.generations else {
            return Ok(None);
        };
        let catalog = Arc::clone(&generations.catalog);
        let choice = GenerationChoice::Number(number);
        let shown = choice.of(&catalog.generations)?.clone();
        let start = self.index.archive_start();
        let generations = showing(&*self.source, start, &self.end, (catalog, shown))?;
        let has_names = lists_names(&generations, &self.end);
        let index = self.index.showing(generations.members(), has_names);
        Ok(Some(IndexedArchive {
            index: Arc::new(index),
            generations: Some(generations),
            source: Arc::clone(&self.source),
            limits: self.limits,
            options: self.options.clone(),
            head: self.head,
            end: self.end,
            store: Arc::clone(&self.store),
            entry_frames: Arc::clone(&self.entry_frames),
            maps: Arc::clone(&self.maps),
            maps_bytes: self.maps_bytes,
            damaged: Arc::clone(&self.damaged),
            log: Arc::clone(&self.log),
            lost: self.lost.clone(),
            given_back: Arc::clone(&self.given_back),
        }))
    }

    /// What a further generation continues.
    pub(crate) fn growth(&self) -> Result<Growth> {
        Growth::of(
            &*self.source,
            (&self.head, &self.end),
            &self.index,
            self.generations.as_ref(),
        )
    }
}

impl Provable for IndexedArchive {
    fn root_hash(&self) -> Option<[u8; HASH_BYTES]> {
        if let Some(generations) = &self.generations {
            return Some(generations.root_hash);
        }
        // After a scan there is no End frame.
        (self.end.frame_count > 0).then_some(self.end.root_hash)
    }

    fn previous_root_hash(&self) -> Option<[u8; HASH_BYTES]> {
        self.generations.as_ref()?.previous_root_hash
    }

    fn member_hashes(&self, members: Range<u64>) -> Result<Vec<[u8; HASH_BYTES]>> {
        let mut hashes = vec![];
        if members == (0..self.index.member_count() as u64) {
            self.index.for_each_member(&mut |_, start, end| {
                hashes.push(member_hash(start, end));
                Ok(())
            })?;
            return Ok(hashes);
        }
        for number in members {
            let row = self.index.member(number as usize)?;
            let row = row.ok_or_else(|| no_member(number as usize, self.index.member_count()))?;
            hashes.push(member_hash(&row.start, &row.end));
        }
        Ok(hashes)
    }

    fn expect_members(&self, proven: ProvenMembers) {
        self.index.expect_members(proven);
    }

    fn expects_members(&self) -> bool {
        self.index.expects_members()
    }
}

impl Remains for IndexedArchive {
    fn check_index(&self) -> Result<()> {
        self.index.check()
    }

    fn damaged_places(&self) -> Vec<DamagedPlace> {
        let mut places = self.lost.clone();
        places.extend(self.log.places());
        distinct(places)
    }

    fn lost_end(&self, member: usize) -> Result<Option<Range<u64>>> {
        let outline = self.outline(member)?;
        if !outline.is_open || outline.kind.has_entries() {
            return Ok(None);
        }
        let start = self.index.member(member)?.map(|row| row.start);
        let stated = start.and_then(|start| start.content_bytes_hint);
        let found = outline.content_bytes;
        Ok(Some(found..stated.unwrap_or(u64::MAX)).filter(|lost| !lost.is_empty()))
    }

    fn read_remains(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Vec<Range<u64>>> {
        let row = self.outline(member)?;
        let start = row.content_start.saturating_add(offset);
        let range = start..start.saturating_add(buffer.len() as u64);
        let missing = self.content_remains(range, buffer, &self.meter())?;
        Ok(in_member(missing, row.content_start))
    }
}

/// The saturating sum of unchecked numbers.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
