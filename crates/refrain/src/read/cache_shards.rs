//! A reader's block cache, in shards with a lock each, so that many readers do not wait for one
//! another.

use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::Lock;

use crate::read::block_cache::{BlockCache, CodecMemory};

/// The maximum number of shards.
const SHARDS_MAX: u64 = 16;

/// A shard has room for at least this many blocks of the largest size.
const BLOCKS_PER_SHARD_MIN: u64 = 16;

/// The shards of a cache. Neighboring blocks are in different ones.
pub(crate) struct CacheShards {
    shards: Vec<Lock<BlockCache>>,
    /// One more than the largest memory so far of a fast codec, and of a slow one; 0 if unused.
    codec_bytes_noted: AtomicU64,
    slow_codec_bytes_noted: AtomicU64,
    /// The time of the last use, by the clock of the caches that share a limit.
    used: AtomicU64,
}

impl CacheShards {
    /// A cache of `bytes_max` bytes for blocks of up to `block_bytes_max`.
    pub(crate) fn new(bytes_max: u64, block_bytes_max: u64, codecs: CodecMemory) -> CacheShards {
        let room = bytes_max / block_bytes_max.max(1) / BLOCKS_PER_SHARD_MIN;
        let count = room.clamp(1, SHARDS_MAX);
        let codecs = CodecMemory {
            shards: count,
            ..codecs
        };
        let shard = |_| Lock::new(BlockCache::new(bytes_max / count, codecs));
        CacheShards {
            shards: (0..count).map(shard).collect(),
            codec_bytes_noted: AtomicU64::new(0),
            slow_codec_bytes_noted: AtomicU64::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// When the cache was last used.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn set_used(&self, now: u64) {
        // Readers of one archive must not write to the same line of memory all the time.
        if self.used() != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    /// The memory of decoded blocks, compressed copies and spare buffers, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.all().map(|shard| shard.lock().held_bytes()).sum()
    }

    /// Evicts what was not used for longest, other than `block`: spare buffers, a decoded block, or
    /// a compressed copy. Returns whether there was anything.
    pub(crate) fn evict_oldest_but(&self, block: u64) -> bool {
        self.all().any(|shard| shard.lock().evict_oldest_but(block))
    }

    pub(crate) fn shard_for(&self, block: u64) -> &Lock<BlockCache> {
        &self.shards[(block % self.shards.len() as u64) as usize]
    }

    /// All shards.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Lock<BlockCache>> {
        self.shards.iter()
    }

    /// Decodes within a budget of `memory_bytes`, from now on.
    pub(crate) fn set_codec_memory(&self, memory_bytes: u64) {
        for shard in self.all() {
            shard.lock().set_codec_memory(memory_bytes);
        }
    }

    /// Sets the memory limit, in bytes.
    pub(crate) fn set_bytes_max(&self, bytes_max: u64) {
        let count = self.shards.len() as u64;
        for shard in self.all() {
            shard.lock().set_bytes_max(bytes_max / count);
        }
    }

    /// Halves the memory limit of all shards, and evicts what exceeds it. Returns false if it was
    /// too small to be halved.
    pub(crate) fn halve(&self) -> bool {
        let halved = self.all().map(|shard| shard.lock().halve());
        halved.fold(false, |any, one| any | one)
    }

    /// Evicts blocks beyond the memory limit.
    pub(crate) fn trim(&self) {
        for shard in self.all() {
            shard.lock().trim();
        }
    }

    /// Records that a block will be decoded with `codec_bytes` of codec memory. All shards make
    /// room for a codec.
    pub(crate) fn note_decoding(&self, codec_bytes: u64, is_slow: bool) {
        let noted = if is_slow { &self.slow_codec_bytes_noted } else { &self.codec_bytes_noted };
        // Nearly all blocks need as much as those before.
        let needed = codec_bytes.saturating_add(1);
        if noted.load(Ordering::Relaxed) >= needed {
            return;
        }
        noted.fetch_max(needed, Ordering::Relaxed);
        for shard in &self.shards {
            shard.lock().note_decoding(codec_bytes, is_slow);
        }
    }

    /// Whether blocks of slow codecs have been decoded.
    pub(crate) fn has_slow_blocks(&self) -> bool {
        self.slow_codec_bytes_noted.load(Ordering::Relaxed) > 0
    }

    /// The memory limit for decoded blocks, in bytes.
    pub(crate) fn decoded_bytes_max(&self) -> u64 {
        let of_shard = |shard: &Lock<BlockCache>| shard.lock().decoded_bytes_max();
        self.shards.iter().map(of_shard).sum()
    }

    /// A buffer of an evicted block of the same shard, or an empty one.
    pub(crate) fn take_spare_buffer(&self, block: u64) -> Vec<u8> {
        self.shard_for(block).lock().take_spare_buffer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODECS: CodecMemory = CodecMemory {
        threads: 2,
        share_bytes: 64 << 20,
        bytes_max: 512 << 20,
        shards: 1,
    };

    #[test]
    fn small_blocks_get_many_shards_and_large_ones_few() {
        let count = |bytes_max, block| CacheShards::new(bytes_max, block, CODECS).all().count();
        assert_eq!(count(256 << 20, 128 << 10), 16);
        assert_eq!(count(256 << 20, 4 << 20), 4);
        assert_eq!(count(256 << 20, 64 << 20), 1);
        assert_eq!(count(0, 0), 1);
    }

    #[test]
    fn the_shards_share_the_limit_and_what_codecs_take_of_it() {
        let shards = CacheShards::new(256 << 20, 4 << 20, CODECS);
        assert_eq!(shards.decoded_bytes_max(), 256 << 20);
        shards.note_decoding(64 << 20, false);
        assert_eq!(shards.decoded_bytes_max(), 192 << 20);
        shards.note_decoding(1 << 20, true);
        assert!(shards.has_slow_blocks());
        assert_eq!(shards.decoded_bytes_max(), 48 << 20);
        shards.set_bytes_max(512 << 20);
        assert_eq!(shards.decoded_bytes_max(), 112 << 20);
    }
}
