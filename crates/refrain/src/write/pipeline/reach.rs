//! Limits how far back extents may refer.
//!
//! The archive states its *reach*: how many of its latest bytes a decoder that cannot seek has to
//! keep. An extent may refer to a block only if the block's frame is within the last `reach` bytes
//! of the archive when the frame that completes the extent's epoch arrives. Block sizes are known
//! only after encoding, at a time that depends on the threads. Therefore the blocks of the last few
//! epochs count with their largest possible size, and the sizes of older blocks are waited for. An
//! epoch always needs the reach for its own bytes, so epochs are smaller if the reach is small.
//!
//! The same computation keeps compressed copies of blocks within their memory, if those copies are
//! the history. If blocks decode slowly and their pages are in a temporary file, nothing refers to
//! anything older than that file.

use std::collections::VecDeque;

use refrain_format::block_frame_overhead_max;
use refrain_protect::SEGMENT_BYTES;

use crate::write::pipeline::segments::EPOCH_BYTES;

/// The minimum number of epochs whose blocks count with their largest possible size.
const LAG_EPOCHS_MIN: u64 = 4;

/// The number of epochs whose blocks count with their largest possible size, for blocks of
/// `block_bytes`: two blocks can be filled before the first has to be encoded.
fn lag_epochs(block_bytes: u64, epoch_bytes: u64) -> u64 {
    (1 + 2 * block_bytes.div_ceil(epoch_bytes)).max(LAG_EPOCHS_MIN)
}

/// The content bytes that fill an epoch, such that every epoch keeps within a reach of
/// `reach_bytes` even if it has only fresh bytes, in blocks of `block_bytes`. `None` if impossible.
pub(crate) fn epoch_bytes_within(reach_bytes: u64, block_bytes: u64) -> Option<u64> {
    let segment = SEGMENT_BYTES as u64;
    let epochs = (1..=EPOCH_BYTES / segment).rev();
    epochs
        .map(|segments| segments * segment)
        .find(|&epoch| reach_of_epoch(epoch, block_bytes) <= reach_bytes)
}

/// The smallest reach that the smallest epochs keep within.
pub(crate) fn reach_bytes_min(block_bytes: u64) -> u64 {
    reach_of_epoch(SEGMENT_BYTES as u64, block_bytes)
}

/// The reach that an epoch without references may need: its first byte may be the last of a block,
/// and its last byte the first of another. Its last segment may be one too many.
fn reach_of_epoch(epoch_bytes: u64, block_bytes: u64) -> u64 {
    let fresh_max = epoch_bytes + SEGMENT_BYTES as u64;
    blocks_bytes_max(block_bytes + fresh_max, block_bytes) + other_frames_max(epoch_bytes)
}

/// With a limited reach, the maximum bytes of frames waiting for a block to be complete, before the
/// frames of one more epoch: they are between a block and the epoch that needs it.
fn waiting_frames_max(epoch_bytes: u64) -> u64 {
    epoch_bytes / 8
}

/// The maximum bytes of frames other than blocks between a block that an epoch uses and the frame
/// that completes the epoch: the waiting frames, and what one more epoch adds to them.
fn other_frames_max(epoch_bytes: u64) -> u64 {
    waiting_frames_max(epoch_bytes) + (1 << 20)
}

/// The maximum bytes of the blocks that hold this many raw bytes, starting at a block.
fn blocks_bytes_max(raw_bytes: u64, block_bytes: u64) -> u64 {
    raw_bytes.div_ceil(block_bytes) * frame_bytes_max(block_bytes)
}

struct TrackedBlock {
    store_start: u64,
    epoch: u64,
    bytes_max: u64,
    bytes: Option<u64>,
    /// The largest possible size of the other frames between this block and the next.
    others_max: u64,
}

/// The largest possible size of a block's frame.
fn frame_bytes_max(raw_bytes: u64) -> u64 {
    raw_bytes + block_frame_overhead_max(raw_bytes)
}

/// The store bytes to which extents may refer: within the archive's stated reach, and within the
/// memory for compressed copies.
pub(crate) struct ReachFloors {
    stated: ReachTracker,
    copies: ReachTracker,
    /// The maximum store bytes that can be read again quickly.
    store_bytes: Option<u64>,
    /// The end of the last filled block in the store.
    store_end: u64,
    block_bytes: u64,
    epoch_bytes: u64,
}

/// How far back extents may refer, in bytes; `None` for any distance.
pub(crate) struct ReachLimits {
    /// In the archive.
    pub stated_bytes: Option<u64>,
    /// In the compressed copies, which must not exceed their memory.
    pub copies_bytes: Option<u64>,
    /// In the store.
    pub store_bytes: Option<u64>,
}

impl ReachFloors {
    /// For blocks of at most `block_bytes` and epochs filled by `epoch_bytes`.
    pub(crate) fn new(limits: ReachLimits, block_bytes: u64, epoch_bytes: u64) -> ReachFloors {
        let lag_epochs = lag_epochs(block_bytes, epoch_bytes);
        ReachFloors {
            stated: ReachTracker::new(limits.stated_bytes, lag_epochs),
            copies: ReachTracker::new(limits.copies_bytes, lag_epochs),
            store_bytes: limits.store_bytes,
            store_end: 0,
            block_bytes,
            epoch_bytes,
        }
    }

    /// Whether there is any limit.
    pub(crate) fn is_limited(&self) -> bool {
        let trackers = [&self.stated, &self.copies];
        trackers.iter().any(|tracker| tracker.reach_bytes.is_some()) || self.store_bytes.is_some()
    }

    /// The maximum bytes of frames that may wait for a block to be complete, if the archive states
    /// a reach.
    pub(crate) fn waiting_frames_max(&self) -> Option<u64> {
        let is_stated = self.stated.reach_bytes.is_some();
        is_stated.then(|| waiting_frames_max(self.epoch_bytes))
    }

    /// A block of this many raw bytes was filled while `epoch` was committed.
    pub(crate) fn block_filled(&mut self, epoch: u64, store_start: u64, raw_bytes: u64) {
        self.store_end = store_start + raw_bytes;
        self.stated
            .filled(epoch, store_start, frame_bytes_max(raw_bytes));
        // Most copies are smaller than half of the block. If the last few are not, memory is
        // exceeded by the difference. With a quarter instead of a half, and older copies evicted in
        // exchange, 1 GB of kernel trees in 512 MiB took 90 s instead of 35, since those blocks
        // were decoded slowly again.
        self.copies.filled(epoch, store_start, raw_bytes / 2);
    }

    /// Frames other than blocks, of at most `bytes_max`, follow the last block.
    pub(crate) fn frames_added(&mut self, bytes_max: u64) {
        self.stated.others(bytes_max);
    }

    /// A block was encoded. `copy_bytes` is the memory of its compressed copy, 0 without one.
    pub(crate) fn block_encoded(&mut self, block: u64, frame_bytes: u64, copy_bytes: u64) {
        self.stated.encoded(block, frame_bytes);
        self.copies.encoded(block, copy_bytes);
    }

    /// The maximum archive bytes from the block being filled to the frame that completes the next
    /// epoch; `open_bytes` are in that block and in that epoch.
    pub(crate) fn bytes_to_completion(&self, open_bytes: u64) -> u64 {
        blocks_bytes_max(open_bytes, self.block_bytes) + other_frames_max(self.epoch_bytes)
    }

    /// The store offset below which `epoch` must not refer; `None` until every block that it
    /// depends on was encoded. The epoch is complete `bytes_to_completion` after the last filled
    /// block.
    pub(crate) fn floor_for(&mut self, epoch: u64, bytes_to_completion: u64) -> Option<u64> {
        let is_ready = self.stated.is_ready_for(epoch) && self.copies.is_ready_for(epoch);
        is_ready.then(|| {
            let floor = self.stated.floor_for(epoch, bytes_to_completion);
            let of_store = (self.store_bytes)
                .map_or(0, |store_bytes| self.store_end.saturating_sub(store_bytes));
            floor.max(self.copies.floor_for(epoch, 0)).max(of_store)
        })
    }
}

/// Tracks which part of the store is within one distance.
struct ReachTracker {
    /// `None`: unlimited, and nothing is tracked.
    reach_bytes: Option<u64>,
    lag_epochs: u64,
    blocks: VecDeque<TrackedBlock>,
    first_block: u64,
    floor: u64,
}

impl ReachTracker {
    fn new(reach_bytes: Option<u64>, lag_epochs: u64) -> ReachTracker {
        ReachTracker {
            reach_bytes,
            lag_epochs,
            blocks: VecDeque::new(),
            first_block: 0,
            floor: 0,
        }
    }

    /// A block of at most `bytes_max` was filled while `epoch` was committed.
    fn filled(&mut self, epoch: u64, store_start: u64, bytes_max: u64) {
        if self.reach_bytes.is_some() {
            self.blocks.push_back(TrackedBlock {
                store_start,
                epoch,
                bytes_max,
                bytes: None,
                others_max: 0,
            });
        }
    }

    /// Frames other than blocks, of at most `bytes_max`, follow the last block.
    fn others(&mut self, bytes_max: u64) {
        if let Some(block) = self.blocks.back_mut() {
            block.others_max += bytes_max;
        }
    }

    fn encoded(&mut self, block: u64, bytes: u64) {
        let index = block
            .checked_sub(self.first_block)
            .map(|index| index as usize);
        if let Some(tracked) = index.and_then(|index| self.blocks.get_mut(index)) {
            tracked.bytes = Some(bytes);
        }
    }

    /// Whether every block whose size matters to `epoch` was encoded.
    fn is_ready_for(&self, epoch: u64) -> bool {
        let old = self
            .blocks
            .iter()
            .take_while(|block| block.epoch + self.lag_epochs <= epoch);
        old.into_iter().all(|block| block.bytes.is_some())
    }

    /// The store offset below which everything is out of reach for `epoch`. It never decreases.
    fn floor_for(&mut self, epoch: u64, bytes_to_completion: u64) -> u64 {
        let Some(reach_bytes) = self.reach_bytes else {
            return 0;
        };
        let mut distance = bytes_to_completion;
        let mut first_within = self.blocks.len();
        for (index, block) in self.blocks.iter().enumerate().rev() {
            let is_old = block.epoch + self.lag_epochs <= epoch;
            distance +=
                block.others_max + block.bytes.filter(|_| is_old).unwrap_or(block.bytes_max);
            if distance > reach_bytes {
                break;
            }
            first_within = index;
        }
        if let Some(block) = self.blocks.get(first_within) {
            self.floor = self.floor.max(block.store_start);
        } else if let Some(block) = self.blocks.back() {
            self.floor = self.floor.max(block.store_start + block.bytes_max);
        }
        self.blocks.drain(..first_within);
        self.first_block += first_within as u64;
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_does_not_depend_on_when_blocks_are_encoded() {
        const BLOCK: u64 = 4 << 20;
        let floor = |encode_late: bool| {
            let mut reach = ReachTracker::new(Some(32 << 20), LAG_EPOCHS_MIN);
            let mut floors = vec![];
            for epoch in 0..40 {
                reach.filled(epoch, epoch * BLOCK, BLOCK);
                let encoded =
                    if encode_late { epoch.checked_sub(LAG_EPOCHS_MIN) } else { Some(epoch) };
                if let Some(block) = encoded {
                    reach.encoded(block, BLOCK / 4);
                }
                assert!(reach.is_ready_for(epoch));
                floors.push(reach.floor_for(epoch, 1 << 20));
            }
            floors
        };
        let floors = floor(false);
        assert_eq!(floors, floor(true));
        assert!(floors.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(floors[0], 0);
        assert!(floors[39] > 0);
    }

    #[test]
    fn epochs_are_as_large_as_the_reach_permits() {
        const MIB: u64 = 1 << 20;
        let within = |reach, block| epoch_bytes_within(reach * MIB, block * MIB);
        assert_eq!(within(1 << 40, 4), Some(EPOCH_BYTES));
        assert_eq!(within(32, 4), Some(EPOCH_BYTES));
        // Three blocks of 4 MiB, the last MiB of the first of them to the first of the last one.
        assert_eq!(within(16, 4), Some(7 * MIB));
        assert_eq!(within(64, 16), Some(EPOCH_BYTES));
        for block_bytes in [64 << 10, MIB, 4 * MIB, 64 * MIB] {
            let least = reach_bytes_min(block_bytes);
            assert_eq!(epoch_bytes_within(least, block_bytes), Some(MIB));
            assert_eq!(epoch_bytes_within(least - 1, block_bytes), None);
        }
    }

    #[test]
    fn waits_for_the_sizes_of_old_blocks() {
        let mut reach = ReachTracker::new(Some(1 << 30), LAG_EPOCHS_MIN);
        reach.filled(0, 0, 100);
        assert!(reach.is_ready_for(LAG_EPOCHS_MIN - 1));
        assert!(!reach.is_ready_for(LAG_EPOCHS_MIN));
        reach.encoded(0, 50);
        assert!(reach.is_ready_for(LAG_EPOCHS_MIN));
    }

    #[test]
    fn nothing_refers_to_what_the_temporary_file_has_no_more() {
        let limits = ReachLimits {
            stated_bytes: None,
            copies_bytes: None,
            store_bytes: Some(1000),
        };
        let mut floors = ReachFloors::new(limits, 400, EPOCH_BYTES);
        let mut floor = |epoch: u64| {
            floors.block_filled(epoch, epoch * 400, 400);
            floors.floor_for(epoch + 1, 0)
        };
        assert_eq!(
            [0, 1, 2, 3, 4].map(&mut floor),
            [0, 0, 200, 600, 1000].map(Some)
        );
    }

    #[test]
    fn unlimited_reach_tracks_nothing() {
        let mut reach = ReachTracker::new(None, LAG_EPOCHS_MIN);
        reach.filled(0, 0, 100);
        assert!(reach.is_ready_for(100));
        assert_eq!(reach.floor_for(100, 0), 0);
    }
}
