//! How the memory of opened archives is shared by their readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::read::decode_memory::StoreMemory;
use crate::read::opened_archive::OpenedArchive;
use crate::read::shared_memory::SharedMemory;
use crate::read::tree::entry_memory::EntryMemory;
use crate::read::tree::view_frames::ViewFrames;

/// What a program takes without any archive, in bytes: its code, and threads.
const PROCESS_BYTES: u64 = 12 << 20;

/// The part of an archive in the memory for entries, and in what is left of the budget for decoded
/// blocks.
pub(crate) struct ServingMemory {
    shared: Arc<SharedMemory>,
    /// What was last taken from the memory for decoded blocks, in bytes.
    taken_bytes: AtomicU64,
    /// Whether the archive is served to many.
    is_serving: AtomicBool,
}

impl ServingMemory {
    pub(crate) fn new(shared: Arc<SharedMemory>) -> ServingMemory {
        shared.opened.fetch_add(1, Ordering::Relaxed);
        ServingMemory {
            shared,
            taken_bytes: AtomicU64::new(0),
            is_serving: AtomicBool::new(false),
        }
    }

    /// Frames of entries of tar views, for a further archive or another generation of this one.
    pub(crate) fn new_views(&self) -> ViewFrames {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        ViewFrames::new(Arc::clone(&self.shared.views), number)
    }

    /// What readers of the store share.
    pub(crate) fn store(&self) -> &StoreMemory {
        &self.shared.store
    }

    /// For frames of entries while they are decoded.
    pub(crate) fn entries(&self) -> &EntryMemory {
        &self.shared.entries
    }

    /// Gives decoded blocks and maps most of the memory, or the archive's part of it.
    pub(crate) fn serve(&self, opened: &dyn OpenedArchive) {
        self.is_serving.store(true, Ordering::Relaxed);
        self.set_cache_bytes(opened, self.taken_bytes.load(Ordering::Relaxed));
        opened.trim_cache();
    }

    /// The caller's own memory was `before` bytes, and is `now`.
    pub(crate) fn reserve(&self, opened: &dyn OpenedArchive, before: u64, now: u64) {
        // The sum of all callers wraps back.
        let difference = now.wrapping_sub(before);
        let reserved_bytes = &self.shared.reserved_bytes;
        reserved_bytes.fetch_add(difference, Ordering::Relaxed);
        self.balance(opened);
    }

    /// Takes the memory of views and of the caller from that of decoded blocks.
    pub(crate) fn balance(&self, opened: &dyn OpenedArchive) {
        let reserved_bytes = self.shared.reserved_bytes.load(Ordering::Relaxed);
        let taken_bytes = self
            .shared
            .views
            .memory_bytes()
            .saturating_add(reserved_bytes);
        let before = self.taken_bytes.swap(taken_bytes, Ordering::Relaxed);
        if before != taken_bytes && self.is_serving.load(Ordering::Relaxed) {
            self.set_cache_bytes(opened, taken_bytes);
        }
    }

    fn set_cache_bytes(&self, opened: &dyn OpenedArchive, taken_bytes: u64) {
        let (cache_bytes, maps_bytes_max) = self.cache_limits(taken_bytes);
        if let Some(caches) = &self.shared.store.caches {
            caches.set_bytes_max(cache_bytes);
        }
        opened.set_cache_bytes(cache_bytes, maps_bytes_max);
    }

    /// The memory of all archives for decoded blocks, and how much maps of this one may take, in
    /// bytes.
    fn cache_limits(&self, taken_bytes: u64) -> (u64, u64) {
        let memory_bytes = self.shared.memory_bytes;
        let sharers = self.shared.opened.load(Ordering::Relaxed).max(1);
        let cache_bytes = (memory_bytes / 8 * 5).saturating_sub(PROCESS_BYTES);
        // Some blocks always fit: without them every read would decode.
        let left_bytes = cache_bytes.saturating_sub(taken_bytes);
        let least_bytes = memory_bytes / 8;
        let maps_bytes = memory_bytes / 8;
        // The cache of a single archive knows what its maps take.
        let others_bytes = if sharers > 1 { maps_bytes } else { 0 };
        let blocks_bytes = left_bytes.saturating_sub(others_bytes).max(least_bytes);
        (blocks_bytes, maps_bytes / sharers)
    }
}

impl Drop for ServingMemory {
    fn drop(&mut self) {
        self.shared.opened.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn open_archives_divide_what_is_left_of_the_memory() {
        let shared = SharedMemory::new(512 * MIB);
        let open = || ServingMemory::new(Arc::clone(&shared));
        let alone = open();
        assert_eq!(alone.cache_limits(0), (308 * MIB, 64 * MIB));
        let others = (0..3).map(|_| open()).collect::<Vec<_>>();
        assert_eq!(alone.cache_limits(8 * MIB), (236 * MIB, 16 * MIB));
        assert_eq!(others[2].cache_limits(8 * MIB), (236 * MIB, 16 * MIB));
        assert_eq!(alone.cache_limits(u64::MAX), (64 * MIB, 16 * MIB));
        drop(others);
        assert_eq!(alone.cache_limits(0), (308 * MIB, 64 * MIB));
    }
}
