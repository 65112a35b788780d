//! How the memory of an opened archive is shared by its readers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::read::opened_archive::OpenedArchive;
use crate::read::tree::entry_memory::EntryMemory;
use crate::read::tree::view_frames::ViewFrames;

/// What a program takes without any archive, in bytes: its code, and threads.
const PROCESS_BYTES: u64 = 12 << 20;

/// The memory for entries, and what is left of the budget for decoded blocks.
pub(crate) struct ServingMemory {
    /// The reader's budget, in bytes.
    memory_bytes: u64,
    /// For frames of entries while they are decoded.
    pub entries: EntryMemory,
    /// For tar views.
    pub views: ViewFrames,
    /// What the caller uses besides the archive, in bytes.
    reserved_bytes: AtomicU64,
    /// What was last taken from the memory for decoded blocks, in bytes.
    taken_bytes: AtomicU64,
    /// Whether the archive is served to many.
    is_serving: AtomicBool,
}

impl ServingMemory {
    pub(crate) fn new(memory_bytes: u64) -> ServingMemory {
        ServingMemory {
            memory_bytes,
            entries: EntryMemory::new(memory_bytes),
            views: ViewFrames::new(memory_bytes),
            reserved_bytes: AtomicU64::new(0),
            taken_bytes: AtomicU64::new(0),
            is_serving: AtomicBool::new(false),
        }
    }

    /// Gives decoded blocks and maps most of the memory.
    pub(crate) fn serve(&self, opened: &dyn OpenedArchive) {
        self.is_serving.store(true, Ordering::Relaxed);
        self.set_cache_bytes(opened, self.taken_bytes.load(Ordering::Relaxed));
    }

    /// The caller's own memory was `before` bytes, and is `now`.
    pub(crate) fn reserve(&self, opened: &dyn OpenedArchive, before: u64, now: u64) {
        // The sum of all callers wraps back.
        let difference = now.wrapping_sub(before);
        self.reserved_bytes.fetch_add(difference, Ordering::Relaxed);
        self.balance(opened);
    }

    /// Takes the memory of views and of the caller from that of decoded blocks.
    pub(crate) fn balance(&self, opened: &dyn OpenedArchive) {
        let reserved_bytes = self.reserved_bytes.load(Ordering::Relaxed);
        let taken_bytes = self.views.memory_bytes().saturating_add(reserved_bytes);
        let before = self.taken_bytes.swap(taken_bytes, Ordering::Relaxed);
        if before != taken_bytes && self.is_serving.load(Ordering::Relaxed) {
            self.set_cache_bytes(opened, taken_bytes);
        }
    }

    fn set_cache_bytes(&self, opened: &dyn OpenedArchive, taken_bytes: u64) {
        let cache_bytes = (self.memory_bytes / 8 * 5).saturating_sub(PROCESS_BYTES);
        // Some blocks always fit: without them every read would decode.
        let left_bytes = cache_bytes.saturating_sub(taken_bytes);
        let least_bytes = self.memory_bytes / 8;
        opened.set_cache_bytes(left_bytes.max(least_bytes), self.memory_bytes / 8);
    }
}
