//! A cache of decoded blocks.
//!
//! Blocks of fast codecs are decoded again after eviction. Blocks of slow codecs (block sorting,
//! mixing models) take a second each, and extents refer to short ranges anywhere in the store. When
//! such a block is evicted, a compressed copy remains (`store/compressed_copy.rs`), which is
//! several times smaller and decodes short ranges quickly. (Two kernel trees, block sorting, 1 GiB
//! of memory: without the copies each block was decoded many times, and the test had not ended
//! after 100 s.) Of the compressed copies, those with the highest hash of the block number are
//! evicted first, as in the page cache of the compressor: a reader of one version after the other
//! hits a fixed sample of old blocks more often than the most recently used ones.
//!
//! A pass over everything must not evict what many readers come back to, so decoded blocks are in
//! two queues (segmented LRU; Karedla, Love and Wherry, 1994): new ones on probation, and protected
//! ones. A block becomes protected when it is used again after other blocks came, because a pass
//! uses each block several times in a row. Even a protected block is evicted if it stays unused
//! while many times more blocks come than the cache holds: then readers' interests have changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use refrain_pool::OnceValue;

use crate::store::compressed_copy::CompressedCopy;

/// The decoded bytes of a block, or of its beginning; empty while it is being decoded.
pub(crate) type DecodedCell = Arc<OnceValue<Arc<Vec<u8>>>>;

struct CachedBlock {
    cell: DecodedCell,
    used: u64,
    bytes: u64,
    /// Whether the bytes are the whole block and decoding it was slow.
    is_slow_to_repeat: bool,
    /// Whether its compressed copy is being made. Its bytes no longer count against the limit, but
    /// are readable until the copy exists.
    is_being_compressed: bool,
    /// How many blocks had come when this one came, and when it was last used.
    came: u64,
    came_at_use: u64,
    is_protected: bool,
}

/// A block used again after this many others came is protected.
const OTHERS_BETWEEN_USES: u64 = 8;

/// A protected block is evicted after this many times the blocks of the cache came without a use of
/// it.
const UNUSED_ROUNDS_MAX: u64 = 16;

/// Decoded blocks and compressed copies within a memory limit. The least recently used decoded
/// block on probation is evicted first.
pub(crate) struct BlockCache {
    blocks: HashMap<u64, CachedBlock>,
    /// By the time of their last use: the blocks on probation, and the protected ones, which take
    /// at most three quarters of the limit.
    probation: BTreeMap<u64, u64>,
    protected: BTreeMap<u64, u64>,
    protected_bytes: u64,
    clock: u64,
    came: u64,
    bytes: u64,
    bytes_max: u64,
    /// By hash of the block number.
    compressed: BTreeMap<u64, Arc<CompressedCopy>>,
    compressed_bytes: u64,
    /// Whether blocks of slow codecs have been decoded: then compressed copies get three quarters
    /// of the limit.
    has_slow_blocks: bool,
    /// The memory that codecs use beyond their share of the budget.
    codec_bytes: u64,
    codecs: CodecMemory,
    /// The buffers of evicted blocks, for the next ones: the first access to new memory is
    /// expensive.
    pub(super) spare_buffers: Vec<Vec<u8>>,
    pub(super) spare_buffers_max: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CodecMemory {
    /// The number of blocks that may be decoded at once.
    pub threads: u64,
    /// The memory reserved for codecs, in bytes. Use beyond it reduces the cache's limit.
    pub share_bytes: u64,
    /// The limit for all codecs together, in bytes, unless a single block needs more.
    pub bytes_max: u64,
    /// The number of caches that share what codecs leave.
    pub shards: u64,
}

/// A cache with less is not halved if the system refuses memory.
const HALVED_BYTES_MIN: u64 = 1 << 20;

impl CodecMemory {
    /// Reserves a sixteenth of `memory_bytes`, and allows a half.
    pub(crate) fn new(threads: u64, memory_bytes: u64) -> CodecMemory {
        CodecMemory {
            threads,
            share_bytes: codec_share_bytes(memory_bytes),
            bytes_max: memory_bytes / 2,
            shards: 1,
        }
    }
}

/// The share of a memory budget reserved for codecs, in bytes.
pub(crate) fn codec_share_bytes(memory_bytes: u64) -> u64 {
    memory_bytes / 16
}

/// How many buffers are kept for the next blocks by default.
pub(super) const SPARE_BUFFERS_MAX: usize = 2;

impl BlockCache {
    pub(crate) fn new(bytes_max: u64, codecs: CodecMemory) -> BlockCache {
        BlockCache {
            blocks: HashMap::new(),
            probation: BTreeMap::new(),
            protected: BTreeMap::new(),
            protected_bytes: 0,
            clock: 0,
            came: 0,
            bytes: 0,
            bytes_max,
            compressed: BTreeMap::new(),
            compressed_bytes: 0,
            has_slow_blocks: false,
            codec_bytes: 0,
            codecs,
            spare_buffers: Vec::new(),
            spare_buffers_max: SPARE_BUFFERS_MAX,
        }
    }

    /// Decodes within a budget of `memory_bytes`, from now on.
    pub(crate) fn set_codec_memory(&mut self, memory_bytes: u64) {
        let CodecMemory {
            threads, shards, ..
        } = self.codecs;
        self.codecs = CodecMemory {
            shards,
            ..CodecMemory::new(threads, memory_bytes)
        };
    }

    /// Sets the memory limit, in bytes.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
    }

    /// Halves the memory limit and evicts what exceeds it. Returns whether it was larger than a few
    /// small blocks, which are not worth another attempt.
    pub(crate) fn halve(&mut self) -> bool {
        let had_room = self.bytes_max >= HALVED_BYTES_MIN;
        self.bytes_max /= 2;
        self.trim();
        had_room
    }

    /// The memory limit for decoded blocks, in bytes.
    pub(crate) fn decoded_bytes_max(&self) -> u64 {
        self.available_bytes() / if self.has_slow_blocks { 4 } else { 1 }
    }

    /// The memory limit without the excess use of codecs, in bytes.
    fn available_bytes(&self) -> u64 {
        self.bytes_max.saturating_sub(self.codec_bytes)
    }

    /// Whether the block is in memory, or is being decoded.
    pub(crate) fn holds(&self, block: u64) -> bool {
        self.blocks.contains_key(&block) || self.compressed.contains_key(&hash_of(block))
    }

    /// The compressed copy of a block, unless the block is decoded as well.
    pub(crate) fn compressed(&self, block: u64) -> Option<Arc<CompressedCopy>> {
        if self.blocks.contains_key(&block) {
            None
        } else {
            self.compressed.get(&hash_of(block)).cloned()
        }
    }

    /// Replaces an evicted block by its compressed copy, evicting other copies. `None` if the block
    /// could not be compressed; it will be decoded again.
    pub(crate) fn put_compressed(&mut self, block: u64, compressed: Option<CompressedCopy>) {
        if self
            .blocks
            .get(&block)
            .is_some_and(|open| open.is_being_compressed)
        {
            self.remove(block);
        }
        let Some(compressed) = compressed else {
            return;
        };
        self.compressed_bytes += compressed.memory_bytes();
        if let Some(before) = self.compressed.insert(hash_of(block), Arc::new(compressed)) {
            self.compressed_bytes -= before.memory_bytes();
        }
        self.shrink_compressed();
    }

    fn shrink_compressed(&mut self) {
        while self.compressed_bytes > self.available_bytes() / 4 * 3
            && let Some((_, evicted)) = self.compressed.pop_last()
        {
            self.compressed_bytes -= evicted.memory_bytes();
        }
    }

    /// Records that a block will be decoded with `codec_bytes` of codec memory.
    pub(crate) fn note_decoding(&mut self, codec_bytes: u64, is_slow: bool) {
        let most = self.codecs.bytes_max.max(codec_bytes);
        let all = codec_bytes.saturating_mul(self.codecs.threads).min(most);
        let beyond = all.saturating_sub(self.codecs.share_bytes);
        self.codec_bytes = self.codec_bytes.max(beyond / self.codecs.shards.max(1));
        self.has_slow_blocks |= is_slow;
    }

    /// The cell of a block with at least its first `needed` bytes, decoded or being decoded, and
    /// their number.
    pub(crate) fn find(&mut self, block: u64, needed: u64) -> Option<(DecodedCell, u64)> {
        self.clock += 1;
        let open = self.blocks.get_mut(&block)?;
        if open.bytes < needed {
            return None;
        }
        let found = (open.cell.clone(), open.bytes);
        open.came_at_use = self.came;
        if !open.is_being_compressed {
            let queue = if open.is_protected { &mut self.protected } else { &mut self.probation };
            queue.remove(&open.used);
            queue.insert(self.clock, block);
            open.used = self.clock;
            if !open.is_protected && self.came - open.came > OTHERS_BETWEEN_USES {
                self.protect(block);
            }
        }
        Some(found)
    }

    /// Moves a block from probation to the protected ones, and back those that no longer fit there.
    fn protect(&mut self, block: u64) {
        let Some(open) = self.blocks.get_mut(&block) else {
            return;
        };
        open.is_protected = true;
        self.probation.remove(&open.used);
        self.protected.insert(open.used, block);
        self.protected_bytes += open.bytes;
        let protected_max = self.decoded_bytes_max() / 4 * 3;
        while self.protected_bytes > protected_max
            && let Some((_, oldest)) = self.protected.pop_first()
            && let Some(open) = self.blocks.get_mut(&oldest)
        {
            self.clock += 1;
            self.protected_bytes -= open.bytes;
            open.is_protected = false;
            open.used = self.clock;
            open.came = self.came;
            self.probation.insert(self.clock, oldest);
        }
    }

    /// Removes a block from its queue.
    fn dequeue(&mut self, used: u64, is_protected: bool, bytes: u64) {
        if is_protected {
            self.protected.remove(&used);
            self.protected_bytes -= bytes;
        } else {
            self.probation.remove(&used);
        }
        self.bytes -= bytes;
    }

    /// Whether a beginning of the block is in memory, but fewer bytes than needed.
    pub(crate) fn holds_beginning(&self, block: u64) -> bool {
        self.blocks.contains_key(&block)
    }

    /// The cell of a block with at least `needed` bytes, and their number: whoever finds it empty
    /// has to decode that many. A new cell has `wanted`, at least `needed`.
    pub(crate) fn get(&mut self, block: u64, needed: u64, wanted: u64) -> (DecodedCell, u64) {
        if let Some(found) = self.find(block, needed) {
            return found;
        }
        let now = self.clock;
        self.came += 1;
        self.remove(block);
        let cell = DecodedCell::default();
        let open = CachedBlock {
            cell: cell.clone(),
            used: now,
            bytes: wanted,
            is_slow_to_repeat: false,
            is_being_compressed: false,
            came: self.came,
            came_at_use: self.came,
            is_protected: false,
        };
        self.blocks.insert(block, open);
        self.probation.insert(now, block);
        self.bytes += wanted;
        (cell, wanted)
    }

    /// Marks a block that a slow codec decoded completely.
    pub(crate) fn mark_slow(&mut self, block: u64) {
        if let Some(open) = self.blocks.get_mut(&block) {
            open.is_slow_to_repeat = true;
        }
    }

    /// Evicts other blocks for `block`, which will be decoded. Returns the blocks that the caller
    /// has to compress and pass to [`BlockCache::put_compressed`]. They stay readable until then;
    /// otherwise another reader would decode them again.
    pub(crate) fn shrink(&mut self, block: u64) -> Vec<(u64, Arc<Vec<u8>>)> {
        let mut evicted = vec![];
        while self.bytes > self.decoded_bytes_max() {
            let Some(oldest) = self.oldest_but(block) else {
                break;
            };
            match self.begin_compressing(oldest) {
                Some(bytes) => evicted.push((oldest, bytes)),
                None => self.remove(oldest),
            }
        }
        evicted
    }

    /// Evicts blocks until the rest is within the limit, without keeping compressed copies of them.
    pub(crate) fn trim(&mut self) {
        while self.bytes > self.decoded_bytes_max()
            && let Some(oldest) = self.oldest_but(u64::MAX)
        {
            self.remove(oldest);
        }
        self.spare_buffers.clear();
        self.shrink_compressed();
    }

    /// The memory of decoded blocks, compressed copies and spare buffers, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        let spare = self
            .spare_buffers
            .iter()
            .map(|buffer| buffer.capacity() as u64);
        self.bytes + self.compressed_bytes + spare.sum::<u64>()
    }

    /// Evicts spare buffers, a decoded block other than `block`, or a compressed copy. Returns
    /// whether there was anything.
    pub(crate) fn evict_oldest_but(&mut self, block: u64) -> bool {
        if self.spare_buffers.pop().is_some() {
            return true;
        }
        if let Some(oldest) = self.oldest_but(block) {
            self.remove(oldest);
            self.spare_buffers.clear();
            return true;
        }
        let evicted = self.compressed.pop_last();
        self.compressed_bytes -= evicted.as_ref().map_or(0, |(_, copy)| copy.memory_bytes());
        evicted.is_some()
    }

    /// The block to evict next, other than `block`.
    fn oldest_but(&self, block: u64) -> Option<u64> {
        let is_other = |other: &&u64| **other != block;
        let protected = self.protected.values().find(is_other).copied();
        let is_forgotten = |number: &u64| {
            let unused = |open: &CachedBlock| self.came - open.came_at_use;
            let unused = self.blocks.get(number).map_or(0, unused);
            unused > self.blocks.len() as u64 * UNUSED_ROUNDS_MAX
        };
        let forgotten = protected.filter(is_forgotten);
        let on_probation = || self.probation.values().find(is_other).copied();
        forgotten.or_else(on_probation).or(protected)
    }

    /// The bytes of a block if a compressed copy is wanted and does not exist yet.
    fn begin_compressing(&mut self, block: u64) -> Option<Arc<Vec<u8>>> {
        if self.compressed.contains_key(&hash_of(block)) {
            return None;
        }
        let open = self.blocks.get_mut(&block)?;
        let bytes = open.cell.get().filter(|_| open.is_slow_to_repeat)?.clone();
        open.is_being_compressed = true;
        let (used, is_protected, block_bytes) = (open.used, open.is_protected, open.bytes);
        self.dequeue(used, is_protected, block_bytes);
        Some(bytes)
    }

    pub(crate) fn remove(&mut self, block: u64) {
        let Some(open) = self.blocks.remove(&block) else {
            return;
        };
        if !open.is_being_compressed {
            self.dequeue(open.used, open.is_protected, open.bytes);
        }
        // If nobody else reads it, its buffer is reused for the next block.
        let opened = Arc::into_inner(open.cell).and_then(OnceValue::into_inner);
        if let Some(memory) = opened.and_then(Arc::into_inner) {
            self.put_spare_buffer(memory);
        }
    }

    /// Returns a buffer of an evicted block, or an empty one.
    pub(crate) fn take_spare_buffer(&mut self) -> Vec<u8> {
        self.spare_buffers.pop().unwrap_or_default()
    }

    /// Keeps the buffer of a block for the next one.
    pub(crate) fn put_spare_buffer(&mut self, memory: Vec<u8>) {
        if self.spare_buffers.len() < self.spare_buffers_max {
            self.spare_buffers.push(memory);
        }
    }
}

/// A hash of a block number, unique for each (multiplication by an odd number is bijective).
fn hash_of(block: u64) -> u64 {
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
        shards: 1,
    };

    fn open(cache: &mut BlockCache, block: u64, bytes: usize) -> Vec<(u64, Arc<Vec<u8>>)> {
        let (cell, _) = cache.get(block, bytes as u64, bytes as u64);
        let made = cell.get_or_try_init(|| Ok::<_, ()>(Arc::new(vec![block as u8; bytes])));
        assert!(made.is_ok());
        cache.mark_slow(block);
        cache.shrink(block)
    }

    /// The compressed copy of an incompressible block; slightly larger than `bytes`.
    fn compressed(bytes: usize) -> CompressedCopy {
        let random: Vec<u8> = (0..bytes as u64)
            .map(|at| (hash_of(at) >> 40) as u8)
            .collect();
        CompressedCopy::new(&mut Workspace::new(), &random).expect("compresses")
    }

    #[test]
    fn the_least_recently_used_block_is_evicted_and_returned_for_compression() {
        let mut cache = BlockCache::new(300, CODECS);
        assert!(open(&mut cache, 1, 100).is_empty());
        assert!(open(&mut cache, 2, 100).is_empty());
        assert!(open(&mut cache, 3, 100).is_empty());
        cache.get(1, 100, 100);
        let evicted = open(&mut cache, 4, 100);
        assert_eq!(evicted.len(), 1);
        assert_eq!((evicted[0].0, &evicted[0].1[..]), (2, &[2; 100][..]));
        assert!(cache.holds(2), "until it is compressed");
        cache.put_compressed(2, None);
        assert!(cache.holds(1) && !cache.holds(2));
    }

    #[test]
    fn a_pass_over_everything_evicts_no_block_that_was_used_again_later() {
        let mut cache = BlockCache::new(3200, CODECS);
        let hot = 0..16;
        let touch = |cache: &mut BlockCache, block| {
            let (cell, _) = cache.get(block, 100, 100);
            let made = cell.get_or_try_init(|| Ok::<_, ()>(Arc::new(vec![0; 100])));
            assert!(made.is_ok());
            cache.shrink(block);
        };
        hot.clone().for_each(|block| touch(&mut cache, block));
        (50..60).for_each(|block| touch(&mut cache, block));
        hot.clone().for_each(|block| touch(&mut cache, block));
        for block in 100..500 {
            // A reader of small pieces uses each block several times in a row.
            (0..5).for_each(|_| touch(&mut cache, block));
        }
        assert!(hot.clone().all(|block| cache.holds(block)));
        assert!(cache.bytes <= 3200 && cache.protected_bytes <= 2400);
        // Unused blocks make room for those in use, which had too little.
        for _ in 0..30 {
            (2000..2024).for_each(|block| touch(&mut cache, block));
        }
        assert!((2000..2024).all(|block| cache.holds(block)));
        let queued = cache.probation.len() + cache.protected.len();
        assert_eq!(queued, cache.blocks.len());
    }

    #[test]
    fn a_beginning_that_was_decoded_serves_shorter_and_slightly_longer_reads() {
        let mut cache = BlockCache::new(300, CODECS);
        let (first, bytes) = cache.get(1, 80, 90);
        assert_eq!(bytes, 90);
        for needed in [10, 80, 90] {
            let (again, bytes) = cache.get(1, needed, needed + 5);
            // Whoever decodes it must decode what the first one needs.
            assert_eq!(bytes, 90);
            assert!(Arc::ptr_eq(&first, &again));
        }
        let (longer, bytes) = cache.get(1, 91, 100);
        assert_eq!(bytes, 100);
        assert!(!Arc::ptr_eq(&first, &longer));
    }

    #[test]
    fn a_block_with_a_compressed_copy_is_not_compressed_again() {
        let mut cache = BlockCache::new(100, CODECS);
        open(&mut cache, 1, 100);
        cache.put_compressed(1, Some(compressed(10)));
        assert!(cache.compressed(1).is_none(), "it is decoded");
        assert!(open(&mut cache, 2, 100).is_empty());
        assert!(cache.compressed(1).is_some() && cache.compressed(2).is_none());
    }

    #[test]
    fn compressed_copies_remain_within_their_share() {
        let one = compressed(1000).memory_bytes();
        let mut cache = BlockCache::new(one * 20, CODECS);
        for block in 0..100 {
            cache.put_compressed(block, Some(compressed(1000)));
            assert!(cache.compressed_bytes <= one * 15);
        }
        let retained = (0..100).filter(|&block| cache.compressed(block).is_some());
        assert_eq!(retained.count(), 15);
    }

    #[test]
    fn a_smaller_limit_is_kept_at_once() {
        let mut cache = BlockCache::new(300, CODECS);
        (1..=3).for_each(|block| drop(open(&mut cache, block, 100)));
        cache.set_bytes_max(150);
        cache.trim();
        assert!(cache.holds(3) && !cache.holds(1) && !cache.holds(2));
        assert_eq!((cache.bytes, cache.spare_buffers.len()), (100, 0));
        cache.set_bytes_max(0);
        cache.trim();
        assert_eq!((cache.bytes, cache.blocks.len()), (0, 0));
    }

    #[test]
    fn slow_codecs_and_their_memory_reduce_the_limit_for_decoded_blocks() {
        let mut cache = BlockCache::new(1000, CODECS);
        cache.note_decoding(50, false);
        assert_eq!(cache.decoded_bytes_max(), 1000);
        cache.note_decoding(150, true);
        assert_eq!(cache.decoded_bytes_max(), 200);
        cache.note_decoding(1 << 62, true);
        assert_eq!(cache.decoded_bytes_max(), 0);
    }
}
