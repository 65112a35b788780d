//! A native archive opened for random access, by its index or by a scan.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::{
    ArchiveEnd, ArchiveHeader, BlockHeader, ExtentsHeader, FrameKind, Index, Limits, MAGIC,
    check_magic,
};
use refrain_pool::Lock;
use refrain_pool::stages::stage;
use refrain_storage::Source;

use crate::archive_info::{
    ArchiveInfo, BlockInfo, CodecUse, CodecUses, Member, codec_name, filters_text, member,
};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::read::epoch_map::EpochMap;
use crate::read::native::block_frame::decode_block_frame;
use crate::read::native::index_reading::read_index;
use crate::read::native::member_content::MemberContent;
use crate::read::native::repeats::{StatedMap, resolve_range};
use crate::read::native::scan::{ScannedArchive, scan};
use crate::read::opened_archive::OpenedArchive;
use crate::read::store_reader::{
    BlockDecoder, BlockLocation, DecodeResources, DecodedBlock, Depth, StoreReader,
};
use crate::read::tree::content::TreeContent;
use crate::store::frames::{limits_for, read_frame_at};

/// A native archive, opened for random access. See [`Archive`](crate::Archive).
pub(crate) struct IndexedArchive {
    pub(super) source: Arc<dyn Source>,
    pub(super) limits: Limits,
    head: ArchiveHeader,
    end: ArchiveEnd,
    index: Arc<Index>,
    members: Vec<Member>,
    pub(super) store: StoreReader,
    maps: Lock<CachedMaps>,
    skipped_bytes: u64,
}

/// The maps of the epochs that were used last, the latest at the end.
#[derive(Default)]
struct CachedMaps {
    maps: Vec<(usize, Arc<StatedMap>)>,
    bytes: u64,
}

/// Epoch maps that are cached whatever their size.
const CACHED_MAPS_MIN: usize = 16;

/// The most epoch maps that are cached. A list of so many is searched faster than one is decoded.
const CACHED_MAPS_MAX: usize = 256;

impl CachedMaps {
    fn get(&mut self, number: usize) -> Option<Arc<StatedMap>> {
        let at = self.maps.iter().rposition(|(kept, _)| *kept == number)?;
        let (_, map) = self.maps.get(at)?;
        let map = map.clone();
        // The order changes only among many, so that a few epochs cost no moves.
        if at + CACHED_MAPS_MIN / 2 < self.maps.len() {
            self.maps[at..].rotate_left(1);
        }
        Some(map)
    }

    /// Adds a map; maps take up to `bytes_max` bytes.
    fn add(&mut self, number: usize, map: Arc<StatedMap>, bytes_max: u64) {
        if self.maps.iter().any(|(kept, _)| *kept == number) {
            return;
        }
        self.bytes += map.memory_bytes() as u64;
        self.maps.push((number, map));
        while self.maps.len() > CACHED_MAPS_MAX
            || (self.maps.len() > CACHED_MAPS_MIN && self.bytes > bytes_max)
        {
            let (_, oldest) = self.maps.remove(0);
            self.bytes -= oldest.memory_bytes() as u64;
        }
    }
}

/// The most content whose repeats are resolved at once, in bytes. It bounds the memory for an epoch
/// of many tiny extents.
const RESOLVED_BYTES_MAX: u64 = 1 << 20;

/// The blocks of an index.
struct IndexedBlocks {
    source: Arc<dyn Source>,
    index: Arc<Index>,
    /// The block numbers, after a scan; otherwise a block number is its position in the index.
    block_ids: Vec<u64>,
    limits: Limits,
}

impl IndexedBlocks {
    /// The payload of a block's frame; its checksum is verified.
    fn payload(&self, location: &BlockLocation) -> Result<Arc<Vec<u8>>> {
        let number = self.index.block_at(location.store_start);
        let block = number.and_then(|number| self.index.blocks.get(number));
        let frame_bytes = block.map(|block| block.frame_bytes);
        let mut stage = stage("read", 0);
        let frame = read_frame_at(
            &*self.source,
            location.frame_offset,
            FrameKind::Block,
            frame_bytes,
            &self.limits,
        )?;
        stage.add_bytes(frame.payload.len() as u64);
        Ok(frame.payload)
    }
}

impl BlockDecoder for IndexedBlocks {
    fn locate(&self, offset_in_store: u64) -> Option<BlockLocation> {
        let number = self.index.block_at(offset_in_store)?;
        let block = self.index.blocks.get(number)?;
        Some(BlockLocation {
            block: self.block_ids.get(number).copied().unwrap_or(number as u64),
            store_start: block.store_start,
            raw_bytes: block.raw_bytes,
            frame_offset: block.frame_offset,
        })
    }

    fn decode(
        &self,
        location: &BlockLocation,
        wanted: u64,
        resources: &DecodeResources,
    ) -> Result<DecodedBlock> {
        decode_block_frame(&self.payload(location)?, location, wanted, resources)
    }
}

impl IndexedArchive {
    /// Opens an archive by the index at its end.
    ///
    /// # Errors
    /// `Damaged` if it is not an archive, is truncated, or its first and last frames contradict
    /// each other; `Unsupported` for a later version; `Limit` if its index exceeds the memory
    /// limit; `Io`.
    pub(crate) fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<IndexedArchive> {
        let limits = limits_for(options.memory_bytes);
        let mut magic = [0; MAGIC.len()];
        let count = source.read_at(0, &mut magic)?;
        check_magic(&magic[..count]).map_err(|error| Error::from(error).at_offset(0))?;
        let first = read_frame_at(
            &*source,
            MAGIC.len() as u64,
            FrameKind::Archive,
            None,
            &limits,
        )?;
        let head = ArchiveHeader::parse(&first.payload)
            .map_err(|error| Error::from(error).at_offset(first.offset))?;
        let (end, index) = read_index(&*source, &limits)?;
        Ok(Self::with_index(
            source,
            options,
            head,
            end,
            index,
            Vec::new(),
        ))
    }

    /// Opens a damaged archive without its index: reads all of it once and uses every intact frame.
    /// Ranges whose blocks and extents exist can be read; others fail as `Damaged`. A member whose
    /// end is lost has a hash of zeros. Content whose member is lost belongs to a member without a
    /// name.
    ///
    /// # Errors
    /// `Damaged` if no frame with content is found; `Io`.
    pub(crate) fn open_by_scan(
        source: Arc<dyn Source>,
        options: &ReadOptions,
    ) -> Result<IndexedArchive> {
        let scanned = scan(&*source, &limits_for(options.memory_bytes))?;
        let ScannedArchive {
            head,
            index,
            block_ids,
            skipped_bytes,
        } = scanned;
        if index.epochs.is_empty() {
            return Err(Error::damaged("no frame with content was found"));
        }
        let archive_bytes = source.size_bytes()?;
        let end = ArchiveEnd {
            index_frame_offset: 0,
            index_frame_bytes: 0,
            frame_count: 0,
            content_bytes: sum(index.epochs.iter().map(|epoch| epoch.content_bytes)),
            store_bytes: sum(index.blocks.iter().map(|block| block.raw_bytes)),
            archive_bytes,
            generation: 0,
        };
        let mut archive = Self::with_index(source, options, head, end, index, block_ids);
        archive.skipped_bytes = skipped_bytes;
        Ok(archive)
    }

    fn with_index(
        source: Arc<dyn Source>,
        options: &ReadOptions,
        head: ArchiveHeader,
        end: ArchiveEnd,
        index: Index,
        block_ids: Vec<u64>,
    ) -> IndexedArchive {
        let limits = limits_for(options.memory_bytes);
        let index = Arc::new(index);
        let blocks = IndexedBlocks {
            source: source.clone(),
            index: index.clone(),
            block_ids,
            limits,
        };
        IndexedArchive {
            members: index
                .members
                .iter()
                .map(|row| member(&row.start, &row.end))
                .collect(),
            store: StoreReader::new(
                Arc::new(blocks),
                limits,
                options.memory_bytes,
                options.memory_bytes / 4,
                options.threads,
            ),
            maps: Lock::default(),
            source,
            limits,
            head,
            end,
            index,
            skipped_bytes: 0,
        }
    }

    /// Fills `buffer` with the content of a range.
    pub(super) fn read_content(
        &self,
        range: Range<u64>,
        buffer: &mut [u8],
        depth: Depth,
    ) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let stated = self.map_of(at)?;
            let mut stop = stated.content().end.min(range.end);
            let of_epoch = stated.without_repeats();
            if of_epoch.is_none() {
                stop = stop.min(at + RESOLVED_BYTES_MAX);
            }
            let piece = &mut buffer[(at - range.start) as usize..(stop - range.start) as usize];
            match of_epoch {
                Some(map) => self.store.fill(map, at, piece, depth)?,
                None => {
                    let map = self.resolved(at..stop)?;
                    self.store.fill(&map, at, piece, depth)?;
                }
            }
            at = stop;
        }
        Ok(())
    }

    /// The blocks that the epoch of the content at `content_at` needs much of, and the epoch's end.
    pub(super) fn blocks_to_prefetch(&self, content_at: u64) -> Result<(Vec<BlockLocation>, u64)> {
        let stated = self.map_of(content_at)?;
        let blocks = match stated.without_repeats() {
            Some(map) => self.store.blocks_to_prefetch(map),
            None => self
                .store
                .blocks_to_prefetch(&self.resolved(stated.content())?),
        };
        Ok((blocks, stated.content().end))
    }

    /// The map of a content range, without repeats.
    fn resolved(&self, range: Range<u64>) -> Result<EpochMap> {
        let extents_max = self.limits.extents_per_frame_max;
        resolve_range(range, extents_max, &mut |at| self.map_of(at))
    }

    /// The map of the epoch that holds the content at `content_at`.
    fn map_of(&self, content_at: u64) -> Result<Arc<StatedMap>> {
        let missing =
            || Error::damaged("no intact frame describes this content").at_content(content_at);
        let number = self.index.epoch_at(content_at).ok_or_else(missing)?;
        if let Some(map) = self.maps.lock().get(number) {
            return Ok(map);
        }
        let row = *self.index.epochs.get(number).ok_or_else(missing)?;
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
            let expected = (
                row.content_start,
                row.content_bytes,
                row.store_start,
                row.fresh_bytes,
            );
            if (
                head.content_start,
                head.content_bytes,
                head.store_start,
                head.fresh_bytes,
            ) != expected
            {
                return Err(Error::damaged(
                    "the epoch differs from its entry in the index",
                ));
            }
            Ok(self
                .store
                .workspaces()
                .with(|space| StatedMap::parse(&mut space.codec, &head, data))?
                .0)
        };
        let map = Arc::new(open().map_err(|error: Error| error.at_offset(offset))?);
        self.maps
            .lock()
            .add(number, map.clone(), self.limits.packed_raw_bytes_max);
        Ok(map)
    }
}

impl OpenedArchive for IndexedArchive {
    /// The members, in the archive's order.
    fn members(&self) -> &[Member] {
        &self.members
    }

    /// Reads content of a member from `offset` into `buffer`. Returns the number of bytes read,
    /// which is less than the length of `buffer` only at the member's end.
    ///
    /// # Errors
    /// `Usage` if there is no such member; `Damaged`, `Unsupported`, `Limit` and `Io` for the
    /// frames that the range needs.
    fn read_at(&self, member: usize, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let row = self.index.members.get(member).ok_or_else(|| {
            let message = format!(
                "there is no member {member}; there are {}",
                self.members.len()
            );
            Error::new(ErrorKind::Usage, message)
        })?;
        let offset = offset.min(row.end.content_bytes);
        let left = row.end.content_bytes - offset;
        let count = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let start = row.start.content_start + offset;
        let depth = Depth::of_read(count);
        self.read_content(start..start + count as u64, &mut buffer[..count], depth)?;
        Ok(count)
    }

    fn content(&self, member: usize) -> Option<Box<dyn TreeContent + '_>> {
        let row = self.index.members.get(member)?;
        Some(Box::new(MemberContent::new(self, row)))
    }

    fn set_cache_bytes(&self, bytes: u64) {
        self.store.set_cache_bytes(bytes);
    }

    /// The properties of the archive, from its index. Reads no block.
    fn info(&self) -> ArchiveInfo {
        let index = &self.index;
        let entries_frames = index.members.iter().flat_map(|member| &member.entries);
        let ends = index.members.iter().map(|member| &member.end);
        let derived_bytes = sum(ends.map(|end| end.view_bytes.saturating_sub(end.content_bytes)));
        ArchiveInfo {
            format_version: self.head.version,
            level: self.head.level,
            memory_bytes: self.head.memory_budget_bytes,
            archive_bytes: self.end.archive_bytes,
            content_bytes: sum(index.members.iter().map(|row| row.end.view_bytes)),
            store_bytes: self.end.store_bytes,
            extents: index.epochs.iter().map(|epoch| epoch.extent_count).sum(),
            extents_frame_bytes: index.epochs.iter().map(|epoch| epoch.frame_bytes).sum(),
            entries_frame_bytes: sum(entries_frames.map(|row| row.frame_bytes)),
            matched_bytes: index.totals.matched_bytes.saturating_add(derived_bytes),
            run_bytes: index.totals.run_bytes,
            reach_bytes: index.totals.reach_bytes,
            members: self.members.clone(),
            codecs: codec_uses(index),
            fallbacks: index.totals.fallback_count,
            block_bytes_max: index
                .blocks
                .iter()
                .map(|block| block.raw_bytes)
                .max()
                .unwrap_or(0),
            lrzip: None,
        }
    }

    /// All blocks, from the headers of their frames.
    ///
    /// # Errors
    /// As [`IndexedArchive::read_at`].
    fn blocks(&self) -> Result<Vec<BlockInfo>> {
        let block = |row: &refrain_format::IndexBlock| {
            let (offset, bytes) = (row.frame_offset, row.frame_bytes);
            let frame = read_frame_at(
                &*self.source,
                offset,
                FrameKind::Block,
                Some(bytes),
                &self.limits,
            )?;
            let (head, _) = BlockHeader::parse(&frame.payload, &self.limits)
                .map_err(|error| Error::from(error).at_offset(offset))?;
            Ok(BlockInfo::new(&head, (offset, bytes)))
        };
        self.index.blocks.iter().map(block).collect()
    }

    /// The number of bytes outside intact frames; 0 except after [`IndexedArchive::open_by_scan`].
    fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }
}

/// The saturating sum of unchecked numbers.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn codec_uses(index: &Index) -> Vec<CodecUse> {
    let mut uses = CodecUses::default();
    for block in &index.blocks {
        let key = (block.codec, block.filter_ids);
        uses.add(key, block.raw_bytes, block.frame_bytes, || {
            (codec_name(block.codec), filters_text(block.filter_ids))
        });
    }
    uses.finish()
}
