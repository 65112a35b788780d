//! The store of an archive: any byte of it, from blocks that are opened when they are needed.

use std::sync::Arc;

use refrain_format::Limits;
use refrain_pool::stages::stage;
use refrain_pool::{Lock, Permits};

use crate::error::{Error, Result};
use crate::read::block_cache::{BlockCache, CodecMemory};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::store::compressed_copy::{CompressedCopy, DecodedPages};
use crate::store::workspaces::{CodecScratch, Workspaces};

/// Which block holds a byte of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub block: u64,
    pub store_start: u64,
    pub raw_bytes: u64,
    /// Where its frame begins.
    pub frame_offset: u64,
}

/// The blocks of an archive: where they are, and how one is decoded. Each dialect has its own.
pub(crate) trait BlockDecoder: Send + Sync {
    /// The block that holds the byte at `offset_in_store`.
    fn locate(&self, offset_in_store: u64) -> Option<BlockPlace>;
    /// Decodes the first `wanted` bytes of a block, or more.
    fn decode(
        &self,
        place: &BlockPlace,
        wanted: u64,
        resources: &DecodeResources,
    ) -> Result<DecodedBlock>;
}

/// A block that was decoded, or its front.
pub(crate) struct DecodedBlock {
    pub bytes: Vec<u8>,
    /// The bytes are all of the block and decoding it again would take long: a compressed copy is retained when it is evicted.
    pub is_worth_packing: bool,
}

/// What decoders of blocks work with.
pub(crate) struct DecodeResources {
    pub limits: Limits,
    pub workspaces: Workspaces,
    /// Memory that codecs may use at the same time, in bytes.
    pub codec_memory: Permits,
    pub(super) cache: Lock<BlockCache>,
}

impl DecodeResources {
    /// Memory for the next block, perhaps none.
    pub(crate) fn spare(&self) -> Vec<u8> {
        self.cache.lock().spare()
    }

    /// A block is about to be decoded, with so much memory of the codec.
    pub(crate) fn note_decoding(&self, codec_bytes: u64, is_slow: bool) {
        self.cache.lock().decoding(codec_bytes, is_slow);
    }
}

/// What of a budget is set aside for codecs to work with, in bytes.
pub(crate) fn codec_share_bytes(memory_bytes: u64) -> u64 {
    memory_bytes / 16
}

/// Reads the store.
pub(crate) struct StoreReader {
    blocks: Arc<dyn BlockDecoder>,
    pub(super) resources: DecodeResources,
    opened_pages: DecodedPages,
}

impl StoreReader {
    pub(crate) fn new(
        blocks: Arc<dyn BlockDecoder>,
        limits: Limits,
        memory_bytes: u64,
        cache_bytes_max: u64,
        threads: usize,
    ) -> StoreReader {
        let codecs = CodecMemory {
            threads: threads as u64,
            share_bytes: codec_share_bytes(memory_bytes),
            bytes_max: memory_bytes / 2,
        };
        StoreReader {
            blocks,
            resources: DecodeResources {
                limits,
                workspaces: Workspaces::default(),
                codec_memory: Permits::new(codecs.bytes_max),
                cache: Lock::new(BlockCache::new(cache_bytes_max, codecs)),
            },
            opened_pages: DecodedPages::default(),
        }
    }

    /// Changes how much of opened blocks is kept, in bytes.
    pub(crate) fn set_cache_bytes(&self, bytes_max: u64) {
        self.resources.cache.lock().set_bytes_max(bytes_max);
    }

    /// Whether blocks of slow codecs were met.
    pub(crate) fn is_packing(&self) -> bool {
        self.resources.cache.lock().is_packing()
    }

    /// How much of opened blocks is kept, in bytes.
    pub(crate) fn open_bytes_max(&self) -> u64 {
        self.resources.cache.lock().open_bytes_max()
    }

    pub(crate) fn workspaces(&self) -> &Workspaces {
        &self.resources.workspaces
    }

    /// Blocks that are not open and that this map needs much of, as far as a part of the cache holds them, in the order of
    /// their first use.
    pub(crate) fn missing(&self, map: &EpochMap) -> Vec<BlockPlace> {
        /// Less than this of a block is left to whoever comes to it.
        const MUCH_BYTES: u64 = 64 << 10;
        let mut needed: Vec<(BlockPlace, u64)> = vec![];
        for (origin, length) in map.origins(map.content()) {
            let Origin::Store(offset) = origin else {
                continue;
            };
            let holds = |place: &BlockPlace| {
                offset >= place.store_start && offset - place.store_start < place.raw_bytes
            };
            if let Some((_, bytes)) = needed.iter_mut().rev().find(|(place, _)| holds(place)) {
                *bytes += length;
            } else if let Some(place) = self.blocks.locate(offset) {
                needed.push((place, length));
            }
        }
        let cache = self.resources.cache.lock();
        let mut room = cache.open_bytes_max() / 4;
        needed.retain(|(place, bytes)| {
            let is_missing = *bytes >= MUCH_BYTES && !cache.holds(place.block);
            let fits = is_missing && place.raw_bytes <= room;
            room -= if fits { place.raw_bytes } else { 0 };
            fits
        });
        needed.into_iter().map(|(place, _)| place).collect()
    }

    /// Fills `out` with content from `content_start` on, which lies inside the map.
    pub(crate) fn fill(
        &self,
        map: &EpochMap,
        content_start: u64,
        out: &mut [u8],
        depth: Depth,
    ) -> Result<()> {
        let mut at = 0;
        for (origin, length) in map.origins(content_start..content_start + out.len() as u64) {
            let piece = &mut out[at..at + length as usize];
            match origin {
                Origin::Fill { pattern, phase } => map.pattern(pattern).fill(phase, piece),
                Origin::Store(offset) => self.read(offset, piece, depth)?,
            }
            at += length as usize;
        }
        if at < out.len() {
            return Err(Error::damaged("extents do not cover their epoch")
                .at_content(content_start + at as u64));
        }
        Ok(())
    }

    pub(super) fn locate(&self, offset_in_store: u64) -> Result<BlockPlace> {
        self.blocks.locate(offset_in_store).ok_or_else(|| {
            Error::damaged(format!(
                "no block holds byte {offset_in_store} of the store, or it is out of the promised reach"
            ))
        })
    }

    /// Fills `out` with bytes of the store.
    pub(crate) fn read(&self, offset_in_store: u64, out: &mut [u8], depth: Depth) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let offset = offset_in_store + done as u64;
            let place = self.locate(offset)?;
            let inside = offset - place.store_start;
            let count = (place.raw_bytes - inside).min((out.len() - done) as u64);
            let piece = &mut out[done..done + count as usize];
            if !self.read_packed(&place, inside, piece) {
                let bytes = self.open(&place, inside + count, depth)?;
                let source = bytes.get(inside as usize..(inside + count) as usize);
                let source =
                    source.ok_or_else(|| Error::damaged("a block is shorter than it should be"))?;
                piece.copy_from_slice(source);
            }
            done += count as usize;
        }
        Ok(())
    }

    /// Fills `out` from the block's packed form, if there is one.
    fn read_packed(&self, place: &BlockPlace, inside: u64, out: &mut [u8]) -> bool {
        let Some(packed) = self.resources.cache.lock().packed(place.block) else {
            return false;
        };
        let read = |space: &mut CodecScratch| {
            let workspace = &mut space.codec;
            packed.read_through(
                &self.opened_pages,
                place.block,
                workspace,
                inside as usize,
                out,
            )
        };
        self.resources.workspaces.with(read).is_some()
    }

    /// The first `wanted` bytes of a block, or more.
    pub(crate) fn open(
        &self,
        place: &BlockPlace,
        wanted: u64,
        depth: Depth,
    ) -> Result<Arc<Vec<u8>>> {
        let wanted = match depth {
            Depth::Whole => place.raw_bytes,
            // What is asked for next is often a little behind.
            Depth::Prefix => (wanted + wanted / 8).min(place.raw_bytes),
        };
        let cell = self.resources.cache.lock().get(place.block, wanted);
        let opened = cell.get_or_try_init(|| {
            let _stage = stage("decode", wanted);
            let bytes = Arc::new(self.decode(place, wanted)?);
            let evicted = self.resources.cache.lock().shrink(place.block);
            evicted
                .into_iter()
                .for_each(|(block, bytes)| self.pack(block, bytes));
            Ok::<_, Error>(bytes)
        });
        Ok(opened
            .map_err(|error| error.at_offset(place.frame_offset).in_block(place.block))?
            .clone())
    }

    /// Keeps a block that left the cache in its packed form.
    fn pack(&self, block: u64, bytes: Arc<Vec<u8>>) {
        let packed = self
            .resources
            .workspaces
            .with(|space| CompressedCopy::new(&mut space.codec, &bytes));
        let mut cache = self.resources.cache.lock();
        cache.put_packed(block, packed.ok());
        if let Some(memory) = Arc::into_inner(bytes) {
            cache.keep_spare(memory);
        }
    }

    fn decode(&self, place: &BlockPlace, wanted: u64) -> Result<Vec<u8>> {
        let decoded = self.blocks.decode(place, wanted, &self.resources)?;
        if decoded.is_worth_packing {
            self.resources.cache.lock().is_worth_packing(place.block);
        }
        Ok(decoded.bytes)
    }
}

/// How much of a block to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All: the rest will be asked for.
    Whole,
    /// What is needed: a single read.
    Prefix,
}
