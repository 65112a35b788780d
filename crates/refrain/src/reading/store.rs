//! The store of an archive: any byte of it, from blocks that are opened when they are needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use refrain_codec::{decode, decode_memory_bytes, decode_prefix};
use refrain_format::{BlockHead, Limits};
use refrain_runtime::{Lock, OnceValue};

use crate::error::{Error, Result};
use crate::pipeline::encode::Workspaces;
use crate::pipeline::reread::description;
use crate::reading::map::{EpochMap, Origin};

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
}

/// A block that was opened: all of it, or its first bytes.
type Opened = Arc<OnceValue<Arc<Vec<u8>>>>;

/// Opened blocks, least recently used go first.
struct Cache {
    blocks: HashMap<u64, (Opened, u64, u64)>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
    bytes: u64,
    bytes_max: u64,
    /// Memory of blocks that went, for the next ones: first touch of fresh memory is expensive.
    spare: Vec<Vec<u8>>,
}

/// Buffers that are kept for the next blocks.
const SPARE_MAX: usize = 2;

/// Reads the store.
pub(crate) struct StoreReader {
    blocks: Arc<dyn Blocks>,
    limits: Limits,
    workspaces: Arc<Workspaces>,
    cache: Lock<Cache>,
    memory_bytes: u64,
}

impl StoreReader {
    pub(crate) fn new(
        blocks: Arc<dyn Blocks>,
        limits: Limits,
        memory_bytes: u64,
        cache_bytes_max: u64,
    ) -> StoreReader {
        let cache = Cache {
            blocks: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            bytes: 0,
            bytes_max: cache_bytes_max,
            spare: Vec::new(),
        };
        let workspaces = Arc::new(Workspaces::default());
        StoreReader {
            blocks,
            limits,
            workspaces,
            cache: Lock::new(cache),
            memory_bytes,
        }
    }

    /// Changes how much of opened blocks is kept, in bytes.
    pub(crate) fn set_cache_bytes(&self, bytes_max: u64) {
        self.cache.lock().bytes_max = bytes_max;
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
        let mut room = cache.bytes_max / 4;
        needed.retain(|(place, bytes)| {
            let is_missing = *bytes >= MUCH_BYTES && !cache.blocks.contains_key(&place.block);
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

    /// Fills `out` with bytes of the store.
    fn read(&self, offset_in_store: u64, out: &mut [u8], depth: Depth) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let offset = offset_in_store + done as u64;
            let place = self.blocks.locate(offset).ok_or_else(|| {
                Error::damaged(format!(
                    "no block holds byte {offset} of the store, or it is out of the promised reach"
                ))
            })?;
            let inside = offset - place.store_start;
            let count = (place.raw_bytes - inside).min((out.len() - done) as u64);
            let bytes = self.open(&place, inside + count, depth)?;
            let piece = bytes.get(inside as usize..(inside + count) as usize);
            let piece =
                piece.ok_or_else(|| Error::damaged("a block is shorter than it should be"))?;
            out[done..done + count as usize].copy_from_slice(piece);
            done += count as usize;
        }
        Ok(())
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
            let bytes = Arc::new(self.decode(place, wanted)?);
            self.cache.lock().shrink(place.block);
            Ok::<_, Error>(bytes)
        });
        Ok(opened
            .map_err(|error| error.at_offset(place.frame_offset).in_block(place.block))?
            .clone())
    }

    fn decode(&self, place: &BlockPlace, wanted: u64) -> Result<Vec<u8>> {
        let payload = self.blocks.payload(place)?;
        let (head, data) = BlockHead::parse(&payload, &self.limits)?;
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
        let needed =
            decode_memory_bytes(&description, head.raw_bytes)?.saturating_add(head.raw_bytes);
        if needed > self.memory_bytes {
            return Err(Error::limit(format!(
                "opening the block takes {needed} bytes of memory, allowed are {}",
                self.memory_bytes
            )));
        }
        self.workspaces.with(|space| {
            let workspace = &mut space.codec;
            let mut raw = self.cache.lock().spare.pop().unwrap_or_default();
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

impl Cache {
    /// The cell of a block that holds, or will hold, at least `wanted` bytes.
    fn get(&mut self, block: u64, wanted: u64) -> Opened {
        self.clock += 1;
        let now = self.clock;
        if let Some((cell, used, bytes)) = self.blocks.get_mut(&block)
            && *bytes >= wanted
        {
            self.by_use.remove(used);
            self.by_use.insert(now, block);
            *used = now;
            return cell.clone();
        }
        self.remove(block);
        let cell = Opened::default();
        self.blocks.insert(block, (cell.clone(), now, wanted));
        self.by_use.insert(now, block);
        self.bytes += wanted;
        cell
    }

    /// A block takes its memory now: others may have to go.
    fn shrink(&mut self, block: u64) {
        while self.bytes > self.bytes_max {
            let mut by_use = self.by_use.values();
            let Some(&oldest) = by_use.find(|&&old| old != block) else {
                return;
            };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, block: u64) {
        let Some((cell, used, bytes)) = self.blocks.remove(&block) else {
            return;
        };
        self.by_use.remove(&used);
        self.bytes -= bytes;
        // Nobody else reads it: its memory serves the next block.
        let opened = Arc::into_inner(cell).and_then(OnceValue::into_inner);
        if let Some(memory) = opened.and_then(Arc::into_inner)
            && self.spare.len() < SPARE_MAX
        {
            self.spare.push(memory);
        }
    }
}
