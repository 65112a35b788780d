//! Opened blocks, kept for the next read.
//!
//! Blocks of quick codecs are opened again when they are wanted again. Blocks of slow ones (block sorting, mixing models) take
//! a second each, and all of the store is referred to all the time, a few hundred bytes here and there; so when such a
//! block has to leave, it stays in a packed form (`packed.rs`), several times smaller, of which a few bytes can be had
//! quickly. (Two kernel trees, block sorting, 1 GiB of memory: without it each block was decoded many times over, and the
//! test had not ended after 100 s.) When packed blocks have to leave, those of the highest hash go: like in the page
//! cache of the compressor, who reads versions one after the other is served better by a fixed sample of the old than by
//! what was used last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use refrain_pool::OnceValue;

use crate::store::compressed_copy::CompressedCopy;

/// A block that was opened: all of it, or its first bytes.
pub(crate) type Opened = Arc<OnceValue<Arc<Vec<u8>>>>;

struct OpenBlock {
    cell: Opened,
    used: u64,
    bytes: u64,
    /// The bytes are all of the block, and decoding them took long.
    is_worth_packing: bool,
    /// It is being packed: its bytes are not counted any more, but serve until the packed form is there.
    is_leaving: bool,
}

/// Opened and packed blocks within a limit. Of the opened ones the least recently used go first.
pub(crate) struct BlockCache {
    blocks: HashMap<u64, OpenBlock>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
    bytes: u64,
    bytes_max: u64,
    /// By hash of the block's number.
    packed: BTreeMap<u64, Arc<CompressedCopy>>,
    packed_bytes: u64,
    /// Blocks of slow codecs were met: three quarters of the room are for packed ones.
    is_packing: bool,
    /// Memory that codecs work with beyond their share of the budget.
    codec_bytes: u64,
    codecs: CodecMemory,
    /// Memory of blocks that went, for the next ones: first touch of fresh memory is expensive.
    pub(super) spare: Vec<Vec<u8>>,
    pub(super) spare_max: usize,
}

/// How much memory codecs may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodecMemory {
    /// Blocks that may be decoded at the same time.
    pub threads: u64,
    /// Memory set aside for them, in bytes: beyond it the cache makes room.
    pub share_bytes: u64,
    /// Most memory for all of them, in bytes, unless a single one needs more.
    pub bytes_max: u64,
}

/// Buffers that are kept for the next blocks, if nothing else is said.
pub(super) const SPARE_MAX: usize = 2;

impl BlockCache {
    pub(crate) fn new(bytes_max: u64, codecs: CodecMemory) -> BlockCache {
        BlockCache {
            blocks: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            bytes: 0,
            bytes_max,
            packed: BTreeMap::new(),
            packed_bytes: 0,
            is_packing: false,
            codec_bytes: 0,
            codecs,
            spare: Vec::new(),
            spare_max: SPARE_MAX,
        }
    }

    /// Changes how much is kept, in bytes.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
    }

    /// Whether blocks of slow codecs were met.
    pub(crate) fn is_packing(&self) -> bool {
        self.is_packing
    }

    /// Bytes of opened blocks that are kept.
    pub(crate) fn open_bytes_max(&self) -> u64 {
        self.room() / if self.is_packing { 4 } else { 1 }
    }

    /// What the codecs leave.
    fn room(&self) -> u64 {
        self.bytes_max.saturating_sub(self.codec_bytes)
    }

    /// Whether the block is in memory, or is being opened.
    pub(crate) fn holds(&self, block: u64) -> bool {
        self.blocks.contains_key(&block) || self.packed.contains_key(&rank(block))
    }

    /// The block in its packed form, unless it is open as well.
    pub(crate) fn packed(&self, block: u64) -> Option<Arc<CompressedCopy>> {
        match self.blocks.contains_key(&block) {
            true => None,
            false => self.packed.get(&rank(block)).cloned(),
        }
    }

    /// Takes the packed form of a block in place of the open one, and lets others go for it. `None`: it could not be packed, and
    /// will be decoded again.
    pub(crate) fn put_packed(&mut self, block: u64, packed: Option<CompressedCopy>) {
        if self.blocks.get(&block).is_some_and(|open| open.is_leaving) {
            self.remove(block);
        }
        let Some(packed) = packed else {
            return;
        };
        self.packed_bytes += packed.memory_bytes();
        if let Some(before) = self.packed.insert(rank(block), Arc::new(packed)) {
            self.packed_bytes -= before.memory_bytes();
        }
        self.shrink_packed();
    }

    fn shrink_packed(&mut self) {
        while self.packed_bytes > self.room() / 4 * 3
            && let Some((_, gone)) = self.packed.pop_last()
        {
            self.packed_bytes -= gone.memory_bytes();
        }
    }

    /// A block is about to be decoded, with so much memory.
    pub(crate) fn decoding(&mut self, codec_bytes: u64, is_slow: bool) {
        let most = self.codecs.bytes_max.max(codec_bytes);
        let all = codec_bytes.saturating_mul(self.codecs.threads).min(most);
        let beyond = all.saturating_sub(self.codecs.share_bytes);
        self.codec_bytes = self.codec_bytes.max(beyond);
        self.is_packing |= is_slow;
    }

    /// The cell of a block that holds, or will hold, at least `wanted` bytes.
    pub(crate) fn get(&mut self, block: u64, wanted: u64) -> Opened {
        self.clock += 1;
        let now = self.clock;
        if let Some(open) = self.blocks.get_mut(&block)
            && open.bytes >= wanted
        {
            if open.is_leaving {
                return open.cell.clone();
            }
            self.by_use.remove(&open.used);
            self.by_use.insert(now, block);
            open.used = now;
            return open.cell.clone();
        }
        self.remove(block);
        let cell = Opened::default();
        let open = OpenBlock {
            cell: cell.clone(),
            used: now,
            bytes: wanted,
            is_worth_packing: false,
            is_leaving: false,
        };
        self.blocks.insert(block, open);
        self.by_use.insert(now, block);
        self.bytes += wanted;
        cell
    }

    /// All of the block was decoded by a slow codec.
    pub(crate) fn is_worth_packing(&mut self, block: u64) {
        if let Some(open) = self.blocks.get_mut(&block) {
            open.is_worth_packing = true;
        }
    }

    /// Block `block` takes its memory now: others may have to go. Returns those that the caller has to pack; until it gives
    /// them to [`BlockCache::put_packed`] they stay, for whoever came to one in between would decode it again.
    pub(crate) fn shrink(&mut self, block: u64) -> Vec<(u64, Arc<Vec<u8>>)> {
        let mut evicted = vec![];
        while self.bytes > self.open_bytes_max() {
            let mut by_use = self.by_use.values();
            let Some(&oldest) = by_use.find(|&&old| old != block) else {
                break;
            };
            match self.begin_packing(oldest) {
                Some(bytes) => evicted.push((oldest, bytes)),
                None => self.remove(oldest),
            }
        }
        evicted
    }

    /// The block's bytes, if they are worth packing and are not packed already.
    fn begin_packing(&mut self, block: u64) -> Option<Arc<Vec<u8>>> {
        if self.packed.contains_key(&rank(block)) {
            return None;
        }
        let open = self.blocks.get_mut(&block)?;
        let bytes = open.cell.get().filter(|_| open.is_worth_packing)?.clone();
        open.is_leaving = true;
        self.by_use.remove(&open.used);
        self.bytes -= open.bytes;
        Some(bytes)
    }

    /// Removes an opened block.
    pub(crate) fn remove(&mut self, block: u64) {
        let Some(open) = self.blocks.remove(&block) else {
            return;
        };
        if !open.is_leaving {
            self.by_use.remove(&open.used);
            self.bytes -= open.bytes;
        }
        // If nobody else reads it, its memory serves the next block.
        let opened = Arc::into_inner(open.cell).and_then(OnceValue::into_inner);
        if let Some(memory) = opened.and_then(Arc::into_inner) {
            self.keep_spare(memory);
        }
    }

    /// Memory for the next block, perhaps none.
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the memory of a block for the next one.
    pub(crate) fn keep_spare(&mut self, memory: Vec<u8>) {
        if self.spare.len() < self.spare_max {
            self.spare.push(memory);
        }
    }
}

/// A hash of a block's number, another one for each (multiplication by an odd number is one to one).
fn rank(block: u64) -> u64 {
    block.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use refrain_codec::Workspace;

    use super::*;

    const CODECS: CodecMemory = CodecMemory {
        threads: 2,
        share_bytes: 100,
        bytes_max: 700,
    };

    fn open(cache: &mut BlockCache, block: u64, bytes: usize) -> Vec<(u64, Arc<Vec<u8>>)> {
        let cell = cache.get(block, bytes as u64);
        let made = cell.get_or_try_init(|| Ok::<_, ()>(Arc::new(vec![block as u8; bytes])));
        assert!(made.is_ok());
        cache.is_worth_packing(block);
        cache.shrink(block)
    }

    /// The packed form of a block of noise; takes a little more than `bytes`.
    fn packed(bytes: usize) -> CompressedCopy {
        let noise: Vec<u8> = (0..bytes as u64).map(|at| (rank(at) >> 40) as u8).collect();
        CompressedCopy::new(&mut Workspace::new(), &noise).expect("packs")
    }

    #[test]
    fn the_least_recently_used_leaves_and_is_offered_for_packing() {
        let mut cache = BlockCache::new(300, CODECS);
        assert!(open(&mut cache, 1, 100).is_empty());
        assert!(open(&mut cache, 2, 100).is_empty());
        assert!(open(&mut cache, 3, 100).is_empty());
        cache.get(1, 100);
        let evicted = open(&mut cache, 4, 100);
        assert_eq!(evicted.len(), 1);
        assert_eq!((evicted[0].0, &evicted[0].1[..]), (2, &[2; 100][..]));
        assert!(cache.holds(2), "until it is packed");
        cache.put_packed(2, None);
        assert!(cache.holds(1) && !cache.holds(2));
    }

    #[test]
    fn what_is_packed_is_not_packed_again() {
        let mut cache = BlockCache::new(100, CODECS);
        open(&mut cache, 1, 100);
        cache.put_packed(1, Some(packed(10)));
        assert!(cache.packed(1).is_none(), "it is open");
        assert!(open(&mut cache, 2, 100).is_empty());
        assert!(cache.packed(1).is_some() && cache.packed(2).is_none());
    }

    #[test]
    fn packed_blocks_keep_to_their_share() {
        let one = packed(1000).memory_bytes();
        let mut cache = BlockCache::new(one * 20, CODECS);
        for block in 0..100 {
            cache.put_packed(block, Some(packed(1000)));
            assert!(cache.packed_bytes <= one * 15);
        }
        let kept = (0..100).filter(|&block| cache.packed(block).is_some());
        assert_eq!(kept.count(), 15);
    }

    #[test]
    fn slow_codecs_and_their_memory_leave_less_room() {
        let mut cache = BlockCache::new(1000, CODECS);
        cache.decoding(50, false);
        assert_eq!(cache.open_bytes_max(), 1000);
        cache.decoding(150, true);
        assert_eq!(cache.open_bytes_max(), 200);
        cache.decoding(1 << 62, true);
        assert_eq!(cache.open_bytes_max(), 0);
    }
}
