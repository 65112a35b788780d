//! Reads any range of an archive's store, decoding blocks on demand and caching them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::Limits;
use refrain_pool::permits::AcquiredPermits;
use refrain_pool::pool::{checkpoint, current_worker};
use refrain_pool::stages::stage;
use refrain_pool::{compute, in_any_case, return_free_memory};

use crate::error::{Error, ErrorKind, Result};
use crate::read::block_cache::CodecMemory;
use crate::read::cache_shards::CacheShards;
use crate::read::decode_memory::{DecodeMemory, StoreMemory};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::failed_blocks::FailedBlocks;
use crate::read::latest_blocks::LatestBlocks;
use crate::read::read_statistics::{ReadCounters, count};
use crate::read::work_meter::WorkMeter;
use crate::store::compressed_copy::{CompressedCopy, DecodedPages};
use crate::store::decoders::{Coders, DecodedBy, Decoders};
use crate::store::workspaces::{CodecScratch, Workspaces};

/// The location of a block in the store and in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockLocation {
    pub block: u64,
    pub store_start: u64,
    pub raw_bytes: u64,
    /// The offset of its frame in the archive.
    pub frame_offset: u64,
    /// The size of its frame.
    pub frame_bytes: u64,
    /// What it is decoded by, as far as the index or its head says.
    pub coders: Coders,
}

/// Locates and decodes the blocks of an archive. Each dialect has its own implementation.
pub(crate) trait BlockDecoder: Send + Sync {
    /// The block with the byte at `offset_in_store`.
    fn locate(&self, offset_in_store: u64) -> Result<Option<BlockLocation>>;
    /// Decodes at least the first `wanted` bytes of a block, for the read of `meter`. What is
    /// stored is read on this thread; decoding may be a job of a pool, which waits for its turn.
    fn decode(
        &self,
        location: &BlockLocation,
        wanted: u64,
        resources: &DecodeResources,
        meter: Option<&WorkMeter>,
    ) -> Result<DecodedBlock>;
    /// Where the next block starts after an offset in no block; `None` if there is none.
    fn next_start(&self, _offset_in_store: u64) -> Option<u64> {
        None
    }
    /// Whether the bytes of a block were given back to the file system.
    fn is_given_back(&self, _location: &BlockLocation) -> bool {
        false
    }
    /// Checks that a range of a decoded block is right, which may be partly damaged.
    ///
    /// # Errors
    /// `Damaged`.
    fn check_range(&self, _location: &BlockLocation, _range: Range<u64>) -> Result<()> {
        Ok(())
    }
}

/// The decoded bytes of a block, or of its beginning.
pub(crate) struct DecodedBlock {
    pub bytes: Vec<u8>,
    /// Whether to keep a compressed copy when the block is evicted: the bytes are the whole block,
    /// and decoding it again is slow.
    pub is_slow_to_repeat: bool,
}

/// The resources shared by block decoders.
pub(crate) struct DecodeResources {
    pub limits: Limits,
    pub decoders: Arc<Decoders>,
    memory: StoreMemory,
    pub(super) cache: Arc<CacheShards>,
}

impl DecodeResources {
    /// Waits until there is memory to read the frame of a block and to decode `wanted` bytes of it.
    /// Jobs of a pool do not wait, since readers that have memory wait for them; there are few.
    pub(crate) fn hold_memory(
        &self,
        location: &BlockLocation,
        wanted: u64,
    ) -> Option<[AcquiredPermits<'_>; 2]> {
        let is_job = current_worker().is_some();
        (!is_job).then(|| self.memory.decoding.hold(location.frame_bytes, wanted))
    }

    /// Scratch memory, and the limits of codecs.
    pub(crate) fn decoding(&self) -> &DecodeMemory {
        &self.memory.decoding
    }

    /// The buffer of an evicted block for this one, or an empty one.
    pub(crate) fn take_spare_buffer(&self, block: u64) -> Vec<u8> {
        self.cache.take_spare_buffer(block)
    }

    /// Records that a block will be decoded with `codec_bytes` of codec memory.
    pub(crate) fn note_decoding(&self, codec_bytes: u64, is_slow: bool) {
        self.cache.note_decoding(codec_bytes, is_slow);
    }
}

/// A block is decoded ahead only if at least this many of its bytes are needed.
const MUCH_BYTES: u64 = 64 << 10;

/// Delivered bytes are counted in steps of this size: extents may be tiny, and all threads share
/// the meter.
const DELIVERED_BYTES: u64 = 64 << 10;

/// How many recent blocks are compared with an extent before searching for its block.
const LATEST_BLOCKS: usize = 8;

pub(crate) struct StoreReader {
    blocks: Arc<dyn BlockDecoder>,
    pub(super) resources: DecodeResources,
    decoded_pages: DecodedPages,
    failed: FailedBlocks,
    pub(super) counters: ReadCounters,
}

/// Blocks up to this size are always decoded completely: zstd decodes 128 KiB at once.
const SMALL_BLOCK_BYTES: u64 = 256 << 10;

impl StoreReader {
    pub(crate) fn new(
        (blocks, decoders): (Arc<dyn BlockDecoder>, Arc<Decoders>),
        limits: Limits,
        memory_bytes: u64,
        (cache_bytes_max, block_bytes_max): (u64, u64),
        threads: usize,
    ) -> StoreReader {
        let codecs = CodecMemory::new(threads as u64, memory_bytes);
        let cache = CacheShards::new(cache_bytes_max, block_bytes_max, codecs);
        StoreReader {
            blocks,
            resources: DecodeResources {
                limits,
                decoders,
                memory: StoreMemory::new(memory_bytes),
                cache: Arc::new(cache),
            },
            decoded_pages: DecodedPages::default(),
            failed: FailedBlocks::default(),
            counters: ReadCounters::default(),
        }
    }

    /// Decodes within memory that is shared with other archives, from now on.
    pub(crate) fn share_memory(&mut self, memory: &StoreMemory) {
        self.resources
            .cache
            .set_codec_memory(memory.decoding.memory_bytes);
        if let Some(caches) = &memory.caches {
            caches.add(&self.resources.cache);
        }
        self.resources.memory = memory.clone();
    }

    /// Sets the memory limit of the block cache, in bytes.
    pub(crate) fn set_cache_bytes(&self, bytes_max: u64) {
        self.resources.cache.set_bytes_max(bytes_max);
    }

    /// Evicts blocks beyond the memory limit.
    pub(crate) fn trim_cache(&self) {
        self.resources.cache.trim();
    }

    /// Whether blocks of slow codecs have been decoded.
    pub(crate) fn has_slow_blocks(&self) -> bool {
        self.resources.cache.has_slow_blocks()
    }

    /// The memory limit for decoded blocks, in bytes.
    pub(crate) fn decoded_bytes_max(&self) -> u64 {
        self.resources.cache.decoded_bytes_max()
    }

    /// What decodes blocks and sections of the archive.
    pub(crate) fn decoders(&self) -> &Arc<Decoders> {
        &self.resources.decoders
    }

    pub(crate) fn workspaces(&self) -> &Workspaces {
        &self.resources.decoding().workspaces
    }

    /// Whether the first `count` blocks are all in memory or being decoded.
    pub(crate) fn holds_first(&self, count: u64) -> bool {
        let cache = &self.resources.cache;
        (0..count).all(|block| cache.shard_for(block).lock().holds(block))
    }

    /// The blocks not cached and of which the content range `content` of `map` needs at least
    /// [`MUCH_BYTES`], in order of first use. They fill at most a quarter of the cache.
    pub(crate) fn blocks_to_prefetch(
        &self,
        map: &EpochMap,
        content: Range<u64>,
    ) -> Result<Vec<BlockLocation>> {
        let mut needed: Vec<(BlockLocation, u64)> = vec![];
        let mut numbers: HashMap<u64, usize> = HashMap::new();
        for (origin, length) in map.origins(content) {
            let Origin::Store(offset) = origin else {
                continue;
            };
            let holds = |location: &BlockLocation| {
                offset >= location.store_start && offset - location.store_start < location.raw_bytes
            };
            // Most extents are in the blocks of those before them; the others must not cost a
            // search of all blocks.
            let mut latest = needed.iter_mut().rev().take(LATEST_BLOCKS);
            if let Some((_, bytes)) = latest.find(|(location, _)| holds(location)) {
                *bytes += length;
            } else if let Some(location) = self.blocks.locate(offset)? {
                let number = *numbers.entry(location.block).or_insert(needed.len());
                match needed.get_mut(number) {
                    Some((_, bytes)) => *bytes += length,
                    None => needed.push((location, length)),
                }
            }
        }
        let cache = &self.resources.cache;
        let mut available_bytes = cache.decoded_bytes_max() / 4;
        needed.retain(|(location, bytes)| {
            let is_cached = |block| cache.shard_for(block).lock().holds(block);
            let is_missing = *bytes >= MUCH_BYTES
                && !is_cached(location.block)
                && !self.blocks.is_given_back(location);
            let fits = is_missing && location.raw_bytes <= available_bytes;
            available_bytes -= if fits { location.raw_bytes } else { 0 };
            fits
        });
        Ok(needed.into_iter().map(|(location, _)| location).collect())
    }

    /// Fills `out` with content starting at `content_start`; the range is inside the map. Decoding
    /// counts on `meter`, if there is one.
    ///
    /// # Errors
    /// From decoding; `Limit` if the meter refuses.
    pub(crate) fn fill(
        &self,
        map: &EpochMap,
        content_start: u64,
        out: &mut [u8],
        depth: Depth,
        meter: Option<&WorkMeter>,
    ) -> Result<()> {
        let mut at = 0;
        let mut delivered_bytes = 0;
        let mut latest = LatestBlocks::new();
        let deliver = |bytes: u64, latest: &mut LatestBlocks<BlockLocation>| {
            checkpoint();
            count(&self.counters.hits, latest.take_hits());
            count(&self.counters.delivered_bytes, bytes);
            if let Some(meter) = meter {
                meter.deliver(bytes);
            }
        };
        for (origin, length) in map.origins(content_start..content_start + out.len() as u64) {
            let part = &mut out[at..at + length as usize];
            match origin {
                Origin::Fill { pattern, phase } => map.pattern(pattern).fill(phase, part),
                Origin::Store(offset) => {
                    delivered_bytes += length;
                    if delivered_bytes >= DELIVERED_BYTES {
                        deliver(std::mem::take(&mut delivered_bytes), &mut latest);
                    }
                    let read = self.read_beside(&mut latest, offset, part, depth, meter);
                    read.inspect_err(|error| self.forget(error))?;
                }
            }
            at += length as usize;
        }
        deliver(delivered_bytes, &mut latest);
        if at < out.len() {
            return Err(Error::damaged("extents do not cover their epoch")
                .at_content(content_start + at as u64));
        }
        Ok(())
    }

    /// Drops what was decoded of a damaged block if the next read should retry it.
    fn forget(&self, error: &Error) {
        if let (ErrorKind::Damaged, Some(block)) = (error.kind, error.location.block)
            && !error.is_given_back()
            && self.failed.add(block)
        {
            self.resources.cache.shard_for(block).lock().remove(block);
        }
    }

    /// The block with this store byte, if known.
    pub(super) fn find(&self, offset_in_store: u64) -> Result<Option<BlockLocation>> {
        self.blocks.locate(offset_in_store)
    }

    /// Where the next block starts after an offset in no block.
    pub(super) fn next_block_start(&self, offset_in_store: u64) -> u64 {
        self.blocks.next_start(offset_in_store).unwrap_or(u64::MAX)
    }

    pub(super) fn locate(&self, offset_in_store: u64) -> Result<BlockLocation> {
        self.blocks.locate(offset_in_store)?.ok_or_else(|| {
            Error::damaged(format!(
                "no block holds byte {offset_in_store} of the store, or the block is outside the reach that the archive states"
            ))
        })
    }

    /// Fills `out` with bytes of the store.
    pub(super) fn read(
        &self,
        offset_in_store: u64,
        out: &mut [u8],
        depth: Depth,
        meter: Option<&WorkMeter>,
    ) -> Result<()> {
        let mut latest = LatestBlocks::new();
        self.read_beside(&mut latest, offset_in_store, out, depth, meter)
    }

    /// As [`StoreReader::read`], for one of many reads: from one of the latest blocks if possible.
    fn read_beside(
        &self,
        latest: &mut LatestBlocks<BlockLocation>,
        offset_in_store: u64,
        out: &mut [u8],
        depth: Depth,
        meter: Option<&WorkMeter>,
    ) -> Result<()> {
        if let Some((location, inside, bytes)) = latest.get(offset_in_store, out.len() as u64) {
            out.copy_from_slice(&bytes[inside.start as usize..inside.end as usize]);
            return self.blocks.check_range(&location, inside);
        }
        let mut done = 0;
        while done < out.len() {
            let offset = offset_in_store + done as u64;
            let location = self.locate(offset)?;
            let inside = offset - location.store_start;
            let count = (location.raw_bytes - inside).min((out.len() - done) as u64);
            let part = &mut out[done..done + count as usize];
            match (self.read_compressed(&location, inside, part), meter) {
                (Some(0), _) | (Some(_), None) => {}
                (Some(decoded_bytes), Some(meter)) => meter.count(decoded_bytes)?,
                (None, _) => {
                    let bytes = self.open(&location, inside + count, depth, meter)?;
                    let store_end = location.store_start.saturating_add(location.raw_bytes);
                    latest.add(location.store_start..store_end, location, &bytes);
                    let source = bytes.get(inside as usize..(inside + count) as usize);
                    let source = source.ok_or_else(|| {
                        Error::damaged("a block is shorter than its header states")
                    })?;
                    part.copy_from_slice(source);
                }
            }
            self.blocks.check_range(&location, inside..inside + count)?;
            done += count as usize;
        }
        Ok(())
    }

    /// Fills `out` from the compressed copy of a block. Returns the number of bytes decoded; `None`
    /// if there is no copy.
    fn read_compressed(
        &self,
        location: &BlockLocation,
        inside: u64,
        out: &mut [u8],
    ) -> Option<u64> {
        let shard = self.resources.cache.shard_for(location.block);
        let compressed = shard.lock().compressed(location.block)?;
        let read = |space: &mut CodecScratch| {
            let workspace = &mut space.codec;
            compressed.read_through(
                &self.decoded_pages,
                location.block,
                workspace,
                inside as usize,
                out,
            )
        };
        self.resources.decoding().workspaces.with(read)
    }

    /// At least the first `needed` bytes of a block, cached or decoded.
    pub(crate) fn open(
        &self,
        location: &BlockLocation,
        needed: u64,
        depth: Depth,
        meter: Option<&WorkMeter>,
    ) -> Result<Arc<Vec<u8>>> {
        let resources = &self.resources;
        if let Some(shared) = &resources.memory.caches {
            shared.touch(&resources.cache);
        }
        let shard = resources.cache.shard_for(location.block);
        let mut cache = shard.lock();
        let needed = match depth {
            // Only the checksum of the whole tells what other decoders than the engine's got wrong.
            Depth::Prefix if resources.decoders.decoded_by(&location.coders).is_engine() => needed,
            Depth::Prefix | Depth::Whole => location.raw_bytes,
        };
        let found = cache.find(location.block, needed);
        if let Some(decoded) = found.as_ref().and_then(|(cell, _)| cell.get()) {
            count(&self.counters.hits, 1);
            return Ok(decoded.clone());
        }
        let (cell, wanted) = match found {
            Some(found) => {
                count(&self.counters.hits, 1);
                found
            }
            None => {
                count(&self.counters.misses, 1);
                let wanted = match depth {
                    // Too little of the block was decoded: there will be a third read.
                    _ if cache.holds_beginning(location.block) => location.raw_bytes,
                    Depth::Prefix if location.raw_bytes > SMALL_BLOCK_BYTES => {
                        // The next read often follows a little later in the block.
                        (needed + needed / 8).min(location.raw_bytes)
                    }
                    _ => location.raw_bytes,
                };
                cache.get(location.block, needed, wanted)
            }
        };
        drop(cache);
        if let Some(meter) = meter {
            meter.before_waiting()?;
        }
        if cell.get().is_none() && self.failed.is_lost(location.block) {
            return Err(Error::damaged("the block is damaged")
                .at_offset(location.frame_offset)
                .in_block(location.block));
        }
        let decoded = cell.get_or_try_init(|| {
            if let Some(meter) = meter {
                meter.before_waiting()?;
                meter.decode(wanted, location.frame_offset, location.frame_bytes)?;
            }
            count(&self.counters.decoded_bytes, wanted);
            count(&self.counters.source_bytes, location.frame_bytes);
            let _stage = stage("decode", wanted);
            // Before the block has memory: it may get that of an evicted one.
            let evicted = shard.lock().shrink(location.block).into_iter();
            // They would count for nothing, but stay, without their copies.
            in_any_case(|| evicted.for_each(|(block, bytes)| self.retain_compressed(block, bytes)));
            if let Some(shared) = &resources.memory.caches {
                shared.make_room(&resources.cache, location.block);
            }
            Ok::<_, Error>(Arc::new(self.decode(location, wanted, meter)?))
        });
        Ok(decoded
            .map_err(|error| {
                error
                    .at_offset(location.frame_offset)
                    .in_block(location.block)
            })?
            .clone())
    }

    /// Replaces an evicted block by a compressed copy.
    fn retain_compressed(&self, block: u64, bytes: Arc<Vec<u8>>) {
        let compress = |space: &mut CodecScratch| CompressedCopy::new(&mut space.codec, &bytes);
        let compressed = compute(|| self.resources.decoding().workspaces.with(compress));
        let mut cache = self.resources.cache.shard_for(block).lock();
        cache.put_compressed(block, compressed.ok());
        if let Some(memory) = Arc::into_inner(bytes) {
            cache.put_spare_buffer(memory);
        }
    }

    /// The system refuses memory that the budget allows: halves the cache for good, and frees what
    /// is retained for later. Returns false if nothing is left to free.
    fn give_way(&self) -> bool {
        let had_room = self.resources.cache.halve();
        self.resources.decoding().workspaces.release();
        return_free_memory();
        had_room
    }

    /// Decodes a block. If the system refuses memory for it, cached blocks give way.
    fn decode(
        &self,
        location: &BlockLocation,
        wanted: u64,
        meter: Option<&WorkMeter>,
    ) -> Result<Vec<u8>> {
        let mut decoded = (self.blocks).decode(location, wanted, &self.resources, meter);
        while decoded.as_ref().err().is_some_and(Error::is_out_of_memory) && self.give_way() {
            decoded = (self.blocks).decode(location, wanted, &self.resources, meter);
        }
        let is_damaged = |error: &Error| error.kind == ErrorKind::Damaged && !error.is_given_back();
        // A later version of a plug-in may decode it.
        let by = self.resources.decoders.decoded_by(&location.coders);
        let is_lost = by != DecodedBy::Plugin && decoded.as_ref().err().is_some_and(is_damaged);
        self.failed.decoded(location.block, is_lost);
        let decoded = decoded?;
        if decoded.is_slow_to_repeat {
            let shard = self.resources.cache.shard_for(location.block);
            shard.lock().mark_slow(location.block);
        }
        Ok(decoded.bytes)
    }
}

/// A read of at most this many bytes decodes only the needed beginning of a block.
const SMALL_READ_BYTES: usize = 256 << 10;

impl Depth {
    pub(crate) fn for_read(length_bytes: usize) -> Depth {
        if length_bytes <= SMALL_READ_BYTES { Depth::Prefix } else { Depth::Whole }
    }
}

/// How much of a block to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The whole block: further reads will follow.
    Whole,
    /// Only up to the requested bytes: a single read.
    Prefix,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;
    use crate::read::decode_memory::DECODING_SHARE;

    const BLOCK_BYTES: u64 = 100;

    /// Counts what is decoded at once, and the buffers that come from evicted blocks.
    #[derive(Default)]
    struct Counting {
        now: AtomicU64,
        most: AtomicU64,
        reused: AtomicU64,
    }

    impl BlockDecoder for Counting {
        fn locate(&self, offset_in_store: u64) -> Result<Option<BlockLocation>> {
            Ok(Some(location(offset_in_store / BLOCK_BYTES)))
        }

        fn decode(
            &self,
            location: &BlockLocation,
            wanted: u64,
            resources: &DecodeResources,
            _meter: Option<&WorkMeter>,
        ) -> Result<DecodedBlock> {
            let _held = resources.hold_memory(location, wanted);
            let mut bytes = resources.take_spare_buffer(location.block);
            let is_reused = bytes.capacity() > 0;
            self.reused.fetch_add(is_reused.into(), SeqCst);
            let now = self.now.fetch_add(wanted, SeqCst) + wanted;
            self.most.fetch_max(now, SeqCst);
            // Others would come now.
            (0..100).for_each(|_| std::thread::yield_now());
            bytes.clear();
            bytes.resize(wanted as usize, location.block as u8);
            self.now.fetch_sub(wanted, SeqCst);
            Ok(DecodedBlock {
                bytes,
                is_slow_to_repeat: false,
            })
        }
    }

    fn location(block: u64) -> BlockLocation {
        BlockLocation {
            block,
            store_start: block * BLOCK_BYTES,
            raw_bytes: BLOCK_BYTES,
            frame_offset: block,
            frame_bytes: 1,
            coders: Coders::default(),
        }
    }

    fn reader(memory_bytes: u64, cache_bytes: u64) -> (StoreReader, Arc<Counting>) {
        let counting = Arc::new(Counting::default());
        let decoder = counting.clone();
        let cache = (cache_bytes, BLOCK_BYTES);
        let reader = StoreReader::new(
            (decoder, Arc::new(Decoders::own())),
            Limits::default(),
            memory_bytes,
            cache,
            2,
        );
        (reader, counting)
    }

    fn read(reader: &StoreReader, block: u64) {
        let read = reader.open(&location(block), BLOCK_BYTES, Depth::Whole, None);
        assert_eq!(*read.unwrap(), vec![block as u8; BLOCK_BYTES as usize]);
    }

    #[test]
    fn blocks_are_decoded_at_once_as_far_as_there_is_memory() {
        let most = |memory_bytes| {
            let (reader, counting) = reader(memory_bytes, 4 * BLOCK_BYTES);
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let reader = &reader;
                    scope.spawn(move || (0..20).for_each(|n| read(reader, n * 8 + thread)));
                }
            });
            counting.most.load(SeqCst)
        };
        assert_eq!(most(DECODING_SHARE * BLOCK_BYTES / 2), BLOCK_BYTES);
        let two = most(DECODING_SHARE * BLOCK_BYTES * 5 / 2);
        assert!(two <= 2 * BLOCK_BYTES, "{two}");
    }

    #[test]
    fn a_block_gets_the_memory_of_one_that_is_evicted_for_it() {
        let (reader, counting) = reader(1 << 20, 2 * BLOCK_BYTES);
        (0..10).for_each(|block| read(&reader, block));
        assert_eq!(counting.reused.load(SeqCst), 8);
    }
}
