//! How the memory of a reader is shared out.

use crate::options::ReadOptions;

/// How the memory of a reader is shared out, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// Maps from content to store, or content that is kept in their place. What a pipe's past leaves of its share is partly theirs.
    pub maps_bytes: u64,
    /// What decoders work with, all together and one alone.
    pub decoders_bytes: u64,
    /// A pipe's past.
    pub spool_bytes: u64,
    /// Pages of the store.
    pub cache_bytes: u64,
    /// Content on its way out.
    pub pieces_bytes: u64,
}

impl Share {
    /// For any range of an archive: all of its maps stay.
    pub(crate) fn for_ranges(options: &ReadOptions) -> Share {
        let all = options.memory_bytes;
        let (maps_bytes, decoders_bytes) = (all / 8 * 3, all / 4);
        Share {
            maps_bytes,
            decoders_bytes,
            spool_bytes: 0,
            pieces_bytes: 0,
            cache_bytes: all - maps_bytes - decoders_bytes,
        }
    }

    /// For everything from front to back.
    pub(crate) fn new(options: &ReadOptions, is_stream: bool) -> Share {
        let all = options.memory_bytes;
        let pieces_bytes = all / 16;
        // A decoder may take the same either way: 256 MiB of the default, where lrzip's largest model (ZPAQ, level 9) takes 235.
        let decoders_bytes = all / 4;
        let (spool_bytes, maps_bytes) = match is_stream {
            true => (all / 8 * 3, all / 16 * 3),
            false => (0, all / 8 * 3),
        };
        Share {
            maps_bytes,
            decoders_bytes,
            spool_bytes,
            pieces_bytes,
            cache_bytes: all - maps_bytes - decoders_bytes - pieces_bytes - spool_bytes,
        }
    }
}

impl Share {
    /// What is left for maps when so much of a pipe's past is kept: never more than of a file, so that a file can be read whenever
    /// a pipe can.
    pub(super) fn maps_and_spool_bytes(&self, spooled_bytes: u64) -> u64 {
        let spool_left = self.spool_bytes.saturating_sub(spooled_bytes);
        self.maps_bytes + spool_left.min(self.maps_bytes)
    }
}
