//! One limit for the block caches of several archives: whoever reads has most of it, and what was
//! not used for longest makes room, whichever archive it belongs to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use refrain_pool::Lock;

use crate::read::cache_shards::CacheShards;

/// The caches of archives that share their memory.
pub(crate) struct SharedCaches {
    bytes_max: AtomicU64,
    /// Counts decoded blocks; a cache notes it when it is used.
    clock: AtomicU64,
    caches: Lock<Vec<Weak<CacheShards>>>,
}

impl SharedCaches {
    pub(crate) fn new(bytes_max: u64) -> SharedCaches {
        SharedCaches {
            bytes_max: AtomicU64::new(bytes_max),
            clock: AtomicU64::new(0),
            caches: Lock::default(),
        }
    }

    /// Adds the cache of another archive, until that is closed.
    pub(crate) fn add(&self, cache: &Arc<CacheShards>) {
        let mut caches = self.caches.lock();
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(Arc::downgrade(cache));
    }

    /// Sets the memory limit, in bytes.
    pub(crate) fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Notes that a cache is used.
    pub(crate) fn touch(&self, cache: &CacheShards) {
        cache.set_used(self.clock.load(Ordering::Relaxed));
    }

    /// Evicts blocks until the rest is within the limit, other than `block` of `own`, which is
    /// about to be decoded.
    pub(crate) fn make_room(&self, own: &Arc<CacheShards>, block: u64) {
        self.clock.fetch_add(1, Ordering::Relaxed);
        let open: Vec<Arc<CacheShards>> = {
            let caches = self.caches.lock();
            if caches.len() < 2 {
                return;
            }
            caches.iter().filter_map(Weak::upgrade).collect()
        };
        let mut caches: Vec<_> = (open.iter())
            .map(|cache| (cache.used(), cache.held_bytes(), cache))
            .collect();
        let mut sum: u64 = caches.iter().map(|(_, bytes, _)| bytes).sum();
        let bytes_max = self.bytes_max.load(Ordering::Relaxed);
        // The least recently used first, of several the largest.
        caches.sort_by_key(|(used, bytes, _)| (*used, u64::MAX - bytes));
        for (_, bytes, cache) in caches {
            let kept = if Arc::ptr_eq(cache, own) { block } else { u64::MAX };
            while sum > bytes_max && cache.evict_oldest_but(kept) {}
            sum -= bytes.saturating_sub(cache.held_bytes()).min(sum);
            if sum <= bytes_max {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::block_cache::CodecMemory;

    const BLOCK_BYTES: u64 = 1000;

    fn cache(shared: &SharedCaches) -> Arc<CacheShards> {
        let codecs = CodecMemory::new(2, 1 << 30);
        let cache = Arc::new(CacheShards::new(u64::MAX, u64::MAX, codecs));
        shared.add(&cache);
        cache
    }

    /// As a reader does that decodes the block.
    fn open(shared: &SharedCaches, cache: &Arc<CacheShards>, block: u64) {
        shared.touch(cache);
        let (cell, _) = (cache.shard_for(block).lock()).get(block, BLOCK_BYTES, BLOCK_BYTES);
        shared.make_room(cache, block);
        let decoded = cell.get_or_try_init(|| Ok::<_, ()>(Arc::new(vec![0; BLOCK_BYTES as usize])));
        assert!(decoded.is_ok());
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let shared = SharedCaches::new(4 * BLOCK_BYTES);
        let (first, second, third) = (cache(&shared), cache(&shared), cache(&shared));
        (0..3).for_each(|block| open(&shared, &first, block));
        open(&shared, &second, 0);
        assert_eq!(first.held_bytes(), 3 * BLOCK_BYTES);
        // The one in use gets all; the others keep nothing that it needs.
        (0..4).for_each(|block| open(&shared, &third, block));
        assert_eq!(third.held_bytes(), 4 * BLOCK_BYTES);
        assert_eq!((first.held_bytes(), second.held_bytes()), (0, 0));
        (4..8).for_each(|block| open(&shared, &third, block));
        assert_eq!(third.held_bytes(), 4 * BLOCK_BYTES, "its own are evicted");
        drop(third);
        (0..4).for_each(|block| open(&shared, &second, block));
        assert_eq!(second.held_bytes(), 4 * BLOCK_BYTES);
        shared.set_bytes_max(BLOCK_BYTES);
        open(&shared, &first, 9);
        assert_eq!(first.held_bytes() + second.held_bytes(), BLOCK_BYTES);
    }
}
