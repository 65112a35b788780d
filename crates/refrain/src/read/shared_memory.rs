//! The memory of several archives that are served together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::read::decode_memory::{DecodeMemory, StoreMemory};
use crate::read::shared_caches::SharedCaches;
use crate::read::tree::entry_memory::EntryMemory;
use crate::read::tree::view_frames::SharedViewFrames;

/// One memory budget for several archives that are served together
/// ([`Archive::share_memory`](crate::Archive::share_memory)): decoders, decoded blocks and frames
/// of entries have one memory for all, and maps of extents of each an equal part.
pub struct SharedMemory {
    pub(super) memory_bytes: u64,
    pub(super) store: StoreMemory,
    /// For frames of entries while they are decoded.
    pub(super) entries: EntryMemory,
    pub(super) views: Arc<SharedViewFrames>,
    /// What the callers use besides the archives, in bytes.
    pub(super) reserved_bytes: AtomicU64,
    /// How many archives are open.
    pub(super) opened: AtomicU64,
    /// The number of the next archive.
    pub(super) next: AtomicU64,
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({})", self.memory_bytes)
    }
}

impl SharedMemory {
    /// A budget of `memory_bytes`.
    pub fn new(memory_bytes: u64) -> Arc<SharedMemory> {
        Arc::new(SharedMemory {
            memory_bytes,
            store: StoreMemory {
                decoding: Arc::new(DecodeMemory::new(memory_bytes)),
                caches: Some(Arc::new(SharedCaches::new(memory_bytes / 8 * 3))),
            },
            entries: EntryMemory::new(memory_bytes),
            views: SharedViewFrames::new(memory_bytes),
            reserved_bytes: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            next: AtomicU64::new(0),
        })
    }
}
