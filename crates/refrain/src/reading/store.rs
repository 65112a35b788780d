//! The store of an archive: any byte of it, from blocks that are opened when they are needed.

use std::sync::Arc;

use refrain_codec::{decode, decode_memory_bytes, decode_prefix, opens_slowly};
use refrain_format::{BlockHeader, Limits};
use refrain_pool::stages::stage;
use refrain_pool::{Lock, Permits};

use crate::error::{Error, Result};
use crate::pipeline::encode::{EncodeSpace, Workspaces};
use crate::pipeline::reread::description;
use crate::reading::block_cache::{BlockCache, CodecMemory};
use crate::reading::map::{EpochMap, Origin};
use crate::reading::packed::{OpenedPages, Packed};

/// Which block holds a byte of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub block: u64,
    pub store_start: u64,
    pub raw_bytes: u64,
    /// Where its frame begins.
    pub frame_offset: u64,
}

/// The blocks of an archive, wherever they are.
pub(crate) trait Blocks: Send + Sync {
    /// The block that holds the byte at `offset_in_store`.
    fn locate(&self, offset_in_store: u64) -> Option<BlockPlace>;
    /// The payload of a block's frame, its checksum checked.
    fn payload(&self, place: &BlockPlace) -> Result<Arc<Vec<u8>>>;
    /// Whether blocks may be wanted once more when they were read from front to back.
    fn comes_again(&self) -> bool {
        true
    }
    /// The block opened in the memory of an old one, if it is not in a frame: another dialect's.
    fn open_foreign(&self, _place: &BlockPlace, spare: Vec<u8>) -> OpenedElsewhere {
        OpenedElsewhere::InFrame(spare)
    }
}

/// What [`Blocks::open_foreign`] returns.
pub(crate) enum OpenedElsewhere {
    /// Its raw bytes.
    #[cfg_attr(not(feature = "lrzip"), expect(dead_code))]
    Opened(Result<Vec<u8>>),
    /// It is in a frame, and the memory was not needed.
    InFrame(Vec<u8>),
}

/// What of a budget is set aside for codecs to work with, in bytes.
pub(crate) fn codec_share_bytes(memory_bytes: u64) -> u64 {
    memory_bytes / 16
}

/// Reads the store.
pub(crate) struct StoreReader {
    blocks: Arc<dyn Blocks>,
    limits: Limits,
    workspaces: Arc<Workspaces>,
    cache: Lock<BlockCache>,
    opened_pages: OpenedPages,
    /// Memory that codecs work with.
    codec_memory: Permits,
}

impl StoreReader {
    pub(crate) fn new(
        blocks: Arc<dyn Blocks>,
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
        let workspaces = Arc::new(Workspaces::default());
        StoreReader {
            blocks,
            limits,
            workspaces,
            cache: Lock::new(BlockCache::new(cache_bytes_max, codecs)),
            opened_pages: OpenedPages::default(),
            codec_memory: Permits::new(codecs.bytes_max),
        }
    }

    /// Changes how much of opened blocks is kept, in bytes.
    pub(crate) fn set_cache_bytes(&self, bytes_max: u64) {
        self.cache.lock().set_bytes_max(bytes_max);
    }

    /// Whether blocks of slow codecs were met.
    pub(crate) fn is_packing(&self) -> bool {
        self.cache.lock().is_packing()
    }

    /// How much of opened blocks is kept, in bytes.
    pub(crate) fn open_bytes_max(&self) -> u64 {
        self.cache.lock().open_bytes_max()
    }

    pub(crate) fn workspaces(&self) -> &Workspaces {
        &self.workspaces
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
        let cache = self.cache.lock();
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

    /// The block that holds the byte at `offset_in_store`, and where it begins.
    #[cfg(feature = "lrzip")]
    pub(crate) fn page(&self, offset_in_store: u64) -> Result<(u64, Arc<Vec<u8>>)> {
        let place = self.locate(offset_in_store)?;
        let page = self.open(&place, place.raw_bytes, Depth::Whole)?;
        Ok((place.store_start, page))
    }

    /// Keeps the memory of all blocks that go for the next ones, or of a few. They have one length, and long-lived small memory that ends up between
    /// such that comes and goes can take several times what is in use (kern2 through a pipe: 1.77 GB for 0.55).
    #[cfg(feature = "lrzip")]
    pub(crate) fn keep_all_spares(&self, all: bool) {
        self.cache.lock().keep_all_spares(all);
    }

    /// Lets a block go that will not be wanted again.
    #[cfg(feature = "lrzip")]
    pub(crate) fn forget(&self, block: u64) {
        self.cache.lock().remove(block);
    }

    fn locate(&self, offset_in_store: u64) -> Result<BlockPlace> {
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
        let Some(packed) = self.cache.lock().packed(place.block) else {
            return false;
        };
        let read = |space: &mut EncodeSpace| {
            let workspace = &mut space.codec;
            packed.read_by(
                &self.opened_pages,
                place.block,
                workspace,
                inside as usize,
                out,
            )
        };
        self.workspaces.with(read).is_some()
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
        let cell = self.cache.lock().get(place.block, wanted);
        let opened = cell.get_or_try_init(|| {
            let _stage = stage("decode", wanted);
            let bytes = Arc::new(self.decode(place, wanted)?);
            let evicted = self.cache.lock().shrink(place.block);
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
            .workspaces
            .with(|space| Packed::new(&mut space.codec, &bytes));
        let mut cache = self.cache.lock();
        cache.put_packed(block, packed.ok());
        if let Some(memory) = Arc::into_inner(bytes) {
            cache.keep_spare(memory);
        }
    }

    fn decode(&self, place: &BlockPlace, wanted: u64) -> Result<Vec<u8>> {
        let spare = self.cache.lock().spare();
        let mut raw = match self.blocks.open_foreign(place, spare) {
            OpenedElsewhere::InFrame(spare) => spare,
            // Their decoders have memory of their own, and begin at the front: what leaves the cache is packed.
            OpenedElsewhere::Opened(opened) => {
                if self.blocks.comes_again() {
                    let mut cache = self.cache.lock();
                    cache.decoding(0, true);
                    cache.is_worth_packing(place.block);
                }
                return opened;
            }
        };
        let payload = self.blocks.payload(place)?;
        let (head, data) = BlockHeader::parse(&payload, &self.limits)?;
        if (head.block_id, head.store_start, head.raw_bytes)
            != (place.block, place.store_start, place.raw_bytes)
        {
            return Err(Error::damaged(format!(
                "block {} with {} bytes of the store from {} on was expected; block {} with {} bytes from {} on is there",
                place.block,
                place.raw_bytes,
                place.store_start,
                head.block_id,
                head.raw_bytes,
                head.store_start
            )));
        }
        let description = description(&head.coding, head.raw_bytes)?;
        let codec_bytes = decode_memory_bytes(&description, head.raw_bytes)?;
        let needed = codec_bytes.saturating_add(head.raw_bytes);
        let allowed = self.codec_memory.total();
        if needed > allowed {
            return Err(Error::limit(format!(
                "opening the block takes {needed} bytes of memory, allowed are {allowed}"
            )));
        }
        let is_slow = opens_slowly(description.codec);
        let _permits = self.codec_memory.take(codec_bytes);
        self.cache.lock().decoding(codec_bytes, is_slow);
        self.workspaces.with(|space| {
            let workspace = &mut space.codec;
            if wanted < head.raw_bytes {
                decode_prefix(
                    workspace,
                    &description,
                    data,
                    head.raw_bytes,
                    wanted,
                    &mut raw,
                )?;
            } else {
                decode(workspace, &description, data, head.raw_bytes, &mut raw)?;
                head.check_raw(&raw)?;
                if is_slow {
                    self.cache.lock().is_worth_packing(place.block);
                }
            }
            Ok(raw)
        })
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
