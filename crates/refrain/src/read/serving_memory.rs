//! How the memory of opened archives is shared by their readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::read::opened_archive::OpenedArchive;
use crate::read::tree::entry_memory::EntryMemory;
use crate::read::tree::view_frames::{SharedViewFrames, ViewFrames};

/// What a program takes without any archive, in bytes: its code, and threads.
const PROCESS_BYTES: u64 = 12 << 20;

/// One memory budget for several archives that are served together
/// ([`Archive::share_memory`](crate::Archive::share_memory)). Decoded blocks and maps of extents of
/// each get an equal part; frames of entries have one memory for all.
#[derive(Debug)]
pub struct SharedMemory {
    memory_bytes: u64,
    /// For frames of entries while they are decoded.
    entries: EntryMemory,
    views: Arc<SharedViewFrames>,
    /// What the callers use besides the archives, in bytes.
    reserved_bytes: AtomicU64,
    /// How many archives are open.
    opened: AtomicU64,
    /// The number of the next archive.
    next: AtomicU64,
}

impl SharedMemory {
    /// A budget of `memory_bytes`.
    pub fn new(memory_bytes: u64) -> Arc<SharedMemory> {
        Arc::new(SharedMemory {
            memory_bytes,
            entries: EntryMemory::new(memory_bytes),
            views: SharedViewFrames::new(memory_bytes),
            reserved_bytes: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            next: AtomicU64::new(0),
        })
    }
}

/// The part of an archive in the memory for entries, and in what is left of the budget for decoded
/// blocks.
pub(crate) struct ServingMemory {
    shared: Arc<SharedMemory>,
    /// For tar views.
    pub views: ViewFrames,
    /// What was last taken from the memory for decoded blocks, in bytes.
    taken_bytes: AtomicU64,
    /// Whether the archive is served to many.
    is_serving: AtomicBool,
}

impl ServingMemory {
    pub(crate) fn new(shared: Arc<SharedMemory>) -> ServingMemory {
        shared.opened.fetch_add(1, Ordering::Relaxed);
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        ServingMemory {
            views: ViewFrames::new(Arc::clone(&shared.views), number),
            shared,
            taken_bytes: AtomicU64::new(0),
            is_serving: AtomicBool::new(false),
        }
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
        let taken_bytes = self.views.memory_bytes().saturating_add(reserved_bytes);
        let before = self.taken_bytes.swap(taken_bytes, Ordering::Relaxed);
        if before != taken_bytes && self.is_serving.load(Ordering::Relaxed) {
            self.set_cache_bytes(opened, taken_bytes);
        }
    }

    fn set_cache_bytes(&self, opened: &dyn OpenedArchive, taken_bytes: u64) {
        let (cache_bytes, maps_bytes_max) = self.cache_limits(taken_bytes);
        opened.set_cache_bytes(cache_bytes, maps_bytes_max);
    }

    /// The memory of this archive for decoded blocks, and how much of it maps may take, in bytes.
    fn cache_limits(&self, taken_bytes: u64) -> (u64, u64) {
        let memory_bytes = self.shared.memory_bytes;
        let sharers = self.shared.opened.load(Ordering::Relaxed).max(1);
        let cache_bytes = (memory_bytes / 8 * 5).saturating_sub(PROCESS_BYTES);
        // Some blocks always fit: without them every read would decode.
        let left_bytes = cache_bytes.saturating_sub(taken_bytes);
        let least_bytes = memory_bytes / 8;
        (
            left_bytes.max(least_bytes) / sharers,
            memory_bytes / 8 / sharers,
        )
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
        assert_eq!(alone.cache_limits(8 * MIB), (75 * MIB, 16 * MIB));
        assert_eq!(others[2].cache_limits(8 * MIB), (75 * MIB, 16 * MIB));
        assert_eq!(alone.cache_limits(u64::MAX), (16 * MIB, 16 * MIB));
        drop(others);
        assert_eq!(alone.cache_limits(0), (308 * MIB, 64 * MIB));
    }
}
