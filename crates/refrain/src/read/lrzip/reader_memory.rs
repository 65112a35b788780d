//! The shares of a reader's memory budget.

use crate::options::ReadOptions;

/// The shares of a reader's memory budget, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReaderMemory {
    /// Maps from content to store, or retained content instead. They also get a part of the share
    /// that a pipe's history leaves unused.
    pub maps_bytes: u64,
    /// The limit for all decoders together, and for a single one.
    pub decoders_bytes: u64,
    /// The history of a pipe.
    pub spool_bytes: u64,
    /// Decoded pages of the store.
    pub cache_bytes: u64,
    /// Content not delivered yet.
    pub pieces_bytes: u64,
}

impl ReaderMemory {
    /// For random access: all maps stay in memory.
    pub(crate) fn for_ranges(options: &ReadOptions) -> ReaderMemory {
        let all = options.own_memory_bytes();
        let (maps_bytes, decoders_bytes) = (all / 8 * 3, all / 4);
        ReaderMemory {
            maps_bytes,
            decoders_bytes,
            spool_bytes: 0,
            pieces_bytes: 0,
            cache_bytes: all - maps_bytes - decoders_bytes,
        }
    }

    /// For sequential reading.
    pub(crate) fn new(options: &ReadOptions, is_stream: bool) -> ReaderMemory {
        let all = options.memory_bytes;
        let pieces_bytes = all / 16;
        // Equal for both kinds of reading: 256 MiB of the default budget; lrzip's largest model
        // (ZPAQ, level 9) takes 235.
        let decoders_bytes = all / 4;
        let (spool_bytes, maps_bytes) =
            if is_stream { (all / 8 * 3, all / 16 * 3) } else { (0, all / 8 * 3) };
        ReaderMemory {
            maps_bytes,
            decoders_bytes,
            spool_bytes,
            pieces_bytes,
            cache_bytes: all - maps_bytes - decoders_bytes - pieces_bytes - spool_bytes,
        }
    }
}

impl ReaderMemory {
    /// The memory for maps when a pipe's history uses `spooled_bytes`. Never more than for a file,
    /// so that an archive readable through a pipe is readable as a file.
    pub(super) fn maps_and_spool_bytes(&self, spooled_bytes: u64) -> u64 {
        let spool_left = self.spool_bytes.saturating_sub(spooled_bytes);
        self.maps_bytes + spool_left.min(self.maps_bytes)
    }
}
