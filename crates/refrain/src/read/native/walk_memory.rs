//! How a pass over an archive divides its memory.

use refrain_protect::SEGMENT_BYTES;

use crate::read::store_reader::codec_share_bytes;

/// The shares of the memory budget.
pub(super) struct MemoryShares {
    /// The number of parts in flight, each up to a segment.
    pub(super) parts_max: u64,
    /// The number of blocks being decoded ahead.
    pub(super) blocks_max: u64,
    /// The decoded size of these blocks beyond which no further frame is read.
    pub(super) pending_bytes_max: u64,
    /// The memory for decoded blocks.
    pub(super) cache_bytes: u64,
}

impl MemoryShares {
    pub(super) fn new(memory_bytes: u64, threads: usize, can_reread: bool) -> MemoryShares {
        let threads = threads as u64;
        let parts_max = (memory_bytes / 8 / SEGMENT_BYTES as u64).clamp(2, 8 * threads + 8);
        // Two of the largest blocks of any level, at the default budget. Only one at a time would
        // leave cores idle.
        let pending_bytes_max = memory_bytes / 8;
        let maps_bytes = memory_bytes / 16;
        let history_bytes = if can_reread { 0 } else { memory_bytes / 2 };
        let others = maps_bytes + codec_share_bytes(memory_bytes) + history_bytes;
        // A pipe's history may need less than its half; `walk` adds a part of the rest to
        // the block cache.
        let used = parts_max * SEGMENT_BYTES as u64 + pending_bytes_max + others;
        MemoryShares {
            parts_max,
            blocks_max: 2 * threads + 2,
            pending_bytes_max,
            cache_bytes: memory_bytes.saturating_sub(used),
        }
    }
}
