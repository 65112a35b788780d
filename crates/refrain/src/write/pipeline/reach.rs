//! How far back extents may refer.
//!
//! The archive states its *reach*: how many of its latest bytes a decoder that cannot seek has to
//! retain. An extent may refer to a block only while the block's frame is within the last `reach`
//! bytes of the archive when the frame arrives that completes the extent's epoch. The sizes of
//! blocks are known only when they are encoded, and when that is depends on the threads. Therefore
//! the blocks of the last few epochs count with their largest possible size, and the sizes of older
//! blocks are waited for.
//!
//! The same computation keeps compressed copies of blocks within their memory, where those copies
//! are the history.

use std::collections::VecDeque;

use refrain_format::block_frame_overhead_max;

use crate::write::pipeline::segments::EPOCH_BYTES;

/// The least number of epochs whose blocks count with their largest possible size.
const LAG_EPOCHS_MIN: u64 = 4;

/// The number of epochs whose blocks count with their largest possible size, for blocks of
/// `block_bytes`: two blocks can be filled before the first has to be encoded.
fn lag_epochs(block_bytes: u64) -> u64 {
    (1 + 2 * block_bytes.div_ceil(EPOCH_BYTES)).max(LAG_EPOCHS_MIN)
}

struct TrackedBlock {
    store_start: u64,
    epoch: u64,
    bytes_max: u64,
    bytes: Option<u64>,
    /// The largest possible size of the other frames that follow this block, before the next one.
    others_max: u64,
}

/// The largest possible size of a block's frame.
fn frame_bytes_max(raw_bytes: u64) -> u64 {
    raw_bytes + block_frame_overhead_max(raw_bytes)
}

/// The store bytes that extents may refer to: within the archive's stated reach, and within the
/// memory for compressed copies.
pub(crate) struct ReachFloors {
    stated: ReachTracker,
    copies: ReachTracker,
}

/// How far back extents may refer, in bytes; `None` for any distance.
pub(crate) struct ReachLimits {
    /// In the archive.
    pub stated_bytes: Option<u64>,
    /// What can come between the references of an epoch and the frame that completes it, in bytes
    /// of the archive.
    pub margin_bytes: u64,
    /// In the compressed copies, which must not take more memory than there is for them.
    pub copies_bytes: Option<u64>,
}

impl ReachFloors {
    /// For blocks of at most `block_bytes`.
    pub(crate) fn new(limits: ReachLimits, block_bytes: u64) -> ReachFloors {
        let ReachLimits {
            stated_bytes,
            margin_bytes,
            copies_bytes,
        } = limits;
        ReachFloors {
            stated: ReachTracker::new(stated_bytes, margin_bytes, block_bytes),
            copies: ReachTracker::new(copies_bytes, 0, block_bytes),
        }
    }

    /// Whether the archive states a reach.
    pub(crate) fn is_stated(&self) -> bool {
        self.stated.reach_bytes.is_some()
    }

    /// A block of so many raw bytes was filled while `epoch` was committed.
    pub(crate) fn block_filled(&mut self, epoch: u64, store_start: u64, raw_bytes: u64) {
        self.stated
            .filled(epoch, store_start, frame_bytes_max(raw_bytes));
        // Most copies are smaller than half of the block. Where the last few are not, memory is
        // exceeded by the difference. With a quarter instead of a half, and older copies evicted in
        // exchange, 1 GB of kernel trees in 512 MiB took 90 s instead of 35, since those blocks
        // were decoded slowly again.
        self.copies.filled(epoch, store_start, raw_bytes / 2);
    }

    /// Frames other than blocks, of at most so many bytes, follow the last block.
    pub(crate) fn frames_added(&mut self, bytes_max: u64) {
        self.stated.others(bytes_max);
    }

    /// A block was encoded. `copy_bytes` is the memory of its compressed copy, 0 without one.
    pub(crate) fn block_encoded(&mut self, block: u64, frame_bytes: u64, copy_bytes: u64) {
        self.stated.encoded(block, frame_bytes);
        self.copies.encoded(block, copy_bytes);
    }

    /// The store offset below which `epoch` must not refer; `None` until every block that it
    /// depends on was encoded.
    pub(crate) fn floor_for(&mut self, epoch: u64) -> Option<u64> {
        let is_ready = self.stated.is_ready_for(epoch) && self.copies.is_ready_for(epoch);
        is_ready.then(|| {
            let floor = self.stated.floor_for(epoch);
            floor.max(self.copies.floor_for(epoch))
        })
    }
}

/// Tracks which part of the store is within one distance.
struct ReachTracker {
    /// `None`: unlimited, and nothing is tracked.
    reach_bytes: Option<u64>,
    /// The number of bytes that can come between the blocks that an epoch refers to and the frame
    /// that completes it.
    margin_bytes: u64,
    lag_epochs: u64,
    blocks: VecDeque<TrackedBlock>,
    first_block: u64,
    floor: u64,
}

impl ReachTracker {
    /// For blocks of at most `block_bytes`.
    fn new(reach_bytes: Option<u64>, margin_bytes: u64, block_bytes: u64) -> ReachTracker {
        ReachTracker {
            reach_bytes,
            margin_bytes,
            lag_epochs: lag_epochs(block_bytes),
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

    /// The size of a block is known.
    fn encoded(&mut self, block: u64, bytes: u64) {
        let index = block
            .checked_sub(self.first_block)
            .map(|index| index as usize);
        if let Some(tracked) = index.and_then(|index| self.blocks.get_mut(index)) {
            tracked.bytes = Some(bytes);
        }
    }

    /// Whether every block whose size `epoch` depends on was encoded.
    fn is_ready_for(&self, epoch: u64) -> bool {
        let old = self
            .blocks
            .iter()
            .take_while(|block| block.epoch + self.lag_epochs <= epoch);
        old.into_iter().all(|block| block.bytes.is_some())
    }

    /// The store offset below which everything is out of reach for `epoch`. It never decreases.
    fn floor_for(&mut self, epoch: u64) -> u64 {
        let Some(reach_bytes) = self.reach_bytes else {
            return 0;
        };
        let mut distance = self.margin_bytes;
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
            let mut reach = ReachTracker::new(Some(32 << 20), 1 << 20, BLOCK);
            let mut floors = vec![];
            for epoch in 0..40 {
                reach.filled(epoch, epoch * BLOCK, BLOCK);
                let encoded = if encode_late {
                    epoch.checked_sub(LAG_EPOCHS_MIN)
                } else {
                    Some(epoch)
                };
                if let Some(block) = encoded {
                    reach.encoded(block, BLOCK / 4);
                }
                assert!(reach.is_ready_for(epoch));
                floors.push(reach.floor_for(epoch));
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
    fn waits_for_the_sizes_of_old_blocks() {
        let mut reach = ReachTracker::new(Some(1 << 30), 0, 100);
        reach.filled(0, 0, 100);
        assert!(reach.is_ready_for(LAG_EPOCHS_MIN - 1));
        assert!(!reach.is_ready_for(LAG_EPOCHS_MIN));
        reach.encoded(0, 50);
        assert!(reach.is_ready_for(LAG_EPOCHS_MIN));
    }

    #[test]
    fn unlimited_reach_tracks_nothing() {
        let mut reach = ReachTracker::new(None, 0, 100);
        reach.filled(0, 0, 100);
        assert!(reach.is_ready_for(100));
        assert_eq!(reach.floor_for(100), 0);
    }
}
