//! Divides the memory of a pass over an archive.

use refrain_format::Limits;
use refrain_protect::SEGMENT_BYTES;

use crate::error::{Error, Result, mebibytes};
use crate::read::block_cache::codec_share_bytes;

/// The size of decoded blocks for which a pipe's frames make room if they may go to a temporary
/// file. Reading a frame again takes a hundredth of the time that decoding its block takes: a GB of
/// a kernel tree with 128 MiB took 73 s of processor time where frames filled the memory.
const CACHE_BYTES_WANTED: u64 = 256 << 20;

/// Below this, decoded blocks get what larger budgets spend on parts in flight.
const SMALL_BYTES: u64 = 512 << 20;

/// Bytes for the process itself: code, stacks, lists.
const PROCESS_BYTES: u64 = 8 << 20;

/// The memory of a resolved extent, in bytes.
const RESOLVED_EXTENT_BYTES: u64 = 16;

pub(super) struct MemoryShares {
    /// The number of parts in flight, each up to a segment.
    pub(super) parts_max: u64,
    /// The number of blocks being decoded ahead.
    pub(super) blocks_max: u64,
    /// No further frame is read once these blocks exceed this decoded size.
    pub(super) pending_bytes_max: u64,
    /// The memory for decoded blocks.
    pub(super) cache_bytes: u64,
    /// The memory for the extents of earlier epochs.
    pub(super) maps_bytes: u64,
}

impl MemoryShares {
    pub(super) fn new(memory_bytes: u64, threads: usize, can_reread: bool) -> MemoryShares {
        let threads = threads as u64;
        let parts_bytes =
            if memory_bytes < SMALL_BYTES { memory_bytes / 16 } else { memory_bytes / 8 };
        let parts_max = (parts_bytes / SEGMENT_BYTES as u64).clamp(2, 8 * threads + 8);
        // Two of the largest blocks of any level, at the default budget. Only one at a time would
        // leave cores idle.
        let pending_bytes_max = memory_bytes / 8;
        let maps_bytes = memory_bytes / 16;
        let history_bytes = if can_reread { 0 } else { memory_bytes / 2 };
        let others = PROCESS_BYTES + maps_bytes + codec_share_bytes(memory_bytes) + history_bytes;
        // A pipe's history may need less than its half; `walk` gives a part of the rest to the
        // block cache.
        let used = parts_max * SEGMENT_BYTES as u64 + pending_bytes_max + others;
        MemoryShares {
            parts_max,
            blocks_max: 2 * threads + 2,
            pending_bytes_max,
            cache_bytes: memory_bytes.saturating_sub(used),
            maps_bytes,
        }
    }

    /// To how many extents an epoch may resolve: to more than a frame has, because references stand
    /// for many.
    pub(super) fn extents_max(&self, limits: &Limits) -> u64 {
        let that_fit = self.maps_bytes / RESOLVED_EXTENT_BYTES;
        limits.extents_per_frame_max.max(that_fit)
    }

    /// The maximum bytes of a pipe's frames in memory if others go to a temporary file.
    pub(super) fn frames_bytes_max(&self, memory_bytes: u64) -> u64 {
        // An eighth less than without a temporary file, for what is being written.
        let most = memory_bytes / 8 * 3;
        let missing = CACHE_BYTES_WANTED.saturating_sub(self.cache_bytes);
        most.saturating_sub(missing).max(memory_bytes / 16)
    }

    /// The memory for decoded blocks while this many bytes of a pipe's frames are in memory.
    pub(super) fn cache_beside(&self, frames_bytes: u64, memory_bytes: u64) -> u64 {
        // Small budgets write one frame at a time.
        let for_both = if memory_bytes < SMALL_BYTES {
            memory_bytes / 16 * 7
        } else {
            memory_bytes / 8 * 3
        };
        self.cache_bytes + for_both.saturating_sub(frames_bytes)
    }
}

/// Refuses an archive that needs too much memory before its content can be delivered.
///
/// # Errors
/// `Limit`.
pub(super) fn check_pending(what: &str, bytes: u64, memory_bytes: u64) -> Result<()> {
    let allowed = memory_bytes / 8;
    if bytes <= allowed {
        return Ok(());
    }
    Err(Error::limit(format!(
        "{what} buffered ahead of the output need {} of memory, the limit is {}: raise the memory limit",
        mebibytes(bytes),
        mebibytes(allowed)
    )))
}

/// What a pipe may need.
pub(super) fn reach_notice(reach_bytes: u64, allowed_bytes: u64) -> String {
    format!(
        "from a pipe, up to {} of this archive must remain in memory (its reach), the limit is {}: if it is longer \
         than that, raise the memory limit or name a directory for temporary content",
        mebibytes(reach_bytes),
        mebibytes(allowed_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_may_be_written_leave_small_budgets_to_decoded_blocks() {
        const MIB: u64 = 1 << 20;
        for (memory_mib, frames_mib) in [(128, 8), (256, 16), (512, 32), (4096, 1536)] {
            let shares = MemoryShares::new(memory_mib * MIB, 2, false);
            let frames = shares.frames_bytes_max(memory_mib * MIB);
            assert_eq!(frames, frames_mib * MIB, "{memory_mib} MiB");
            let cache = shares.cache_beside(frames, memory_mib * MIB);
            let wanted = CACHE_BYTES_WANTED.min(memory_mib * MIB / 2);
            assert!(cache >= wanted, "{memory_mib} MiB");
            let parts = shares.parts_max * SEGMENT_BYTES as u64;
            let all = parts + shares.pending_bytes_max + frames + cache + PROCESS_BYTES;
            assert!(all <= memory_mib * MIB, "{memory_mib} MiB");
        }
    }
}
