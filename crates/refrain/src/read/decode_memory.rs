//! What decoding takes besides the blocks themselves: limits and scratch memory, of one archive or
//! of several that share their memory.

use std::sync::Arc;

use refrain_pool::Permits;
use refrain_pool::permits::AcquiredPermits;

use crate::read::shared_caches::SharedCaches;
use crate::store::workspaces::Workspaces;

/// Frames that wait to be decoded may take 1/16 of a reader's memory.
const FRAMES_SHARE: u64 = 16;

/// What is decoded at once may take 1/8 of a reader's memory, or is one block. The cache counts it,
/// too, and never has less.
pub(super) const DECODING_SHARE: u64 = 8;

/// Scratch memory for decoding, and limits for all that is decoded at once.
pub(crate) struct DecodeMemory {
    /// The budget of which these are parts, in bytes.
    pub memory_bytes: u64,
    pub workspaces: Workspaces,
    /// Limits the memory used by codecs at once, in bytes.
    pub codec_memory: Permits,
    /// Limits the memory of frames that wait to be decoded, and what is decoded at once, in bytes.
    frame_memory: Permits,
    decoding_memory: Permits,
}

impl DecodeMemory {
    /// For readers with `memory_bytes` together.
    pub(crate) fn new(memory_bytes: u64) -> DecodeMemory {
        DecodeMemory {
            memory_bytes,
            workspaces: Workspaces::default(),
            codec_memory: Permits::new(memory_bytes / 2),
            frame_memory: Permits::new(memory_bytes / FRAMES_SHARE),
            decoding_memory: Permits::new(memory_bytes / DECODING_SHARE),
        }
    }

    /// Waits until there is memory for a frame of `frame_bytes` and for `wanted` decoded bytes.
    pub(crate) fn hold(&self, frame_bytes: u64, wanted: u64) -> [AcquiredPermits<'_>; 2] {
        [
            self.frame_memory.acquire(frame_bytes),
            self.decoding_memory.acquire(wanted),
        ]
    }
}

/// The memory of a store's reader besides its own cache.
#[derive(Clone)]
pub(crate) struct StoreMemory {
    pub decoding: Arc<DecodeMemory>,
    /// The limit of its cache together with those of other archives, if there is one.
    pub caches: Option<Arc<SharedCaches>>,
}

impl StoreMemory {
    /// `memory_bytes` for one reader.
    pub(crate) fn new(memory_bytes: u64) -> StoreMemory {
        StoreMemory {
            decoding: Arc::new(DecodeMemory::new(memory_bytes)),
            caches: None,
        }
    }
}
