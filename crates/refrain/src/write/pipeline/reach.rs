//! The promise to decoders that cannot seek: how much of the archive's end they have to keep.
//!
//! An extent may refer to a block only while the block's frame is within the last `reach` bytes of the archive when the
//! extent's own frame arrives. Sizes of blocks are known only when they are encoded, and when that is depends on the threads; so
//! the sizes of the last few epochs' blocks are taken as large as they could be, and older ones are waited for.
//!
//! The same count keeps the packed copies of blocks within their memory, where those are all the history there is.

use std::collections::VecDeque;

use refrain_format::{BLOCK_HEADER_BYTES, FRAME_HEADER_BYTES};

use crate::write::pipeline::segments::EPOCH_BYTES;

/// Blocks of the last so many epochs count with their largest possible size, at least.
const LAG_EPOCHS_MIN: u64 = 4;

/// The same for blocks of so many bytes: a third may begin before the first has to be there.
fn lag_epochs(block_bytes: u64) -> u64 {
    (1 + 2 * block_bytes.div_ceil(EPOCH_BYTES)).max(LAG_EPOCHS_MIN)
}

struct TrackedBlock {
    store_start: u64,
    epoch: u64,
    bytes_max: u64,
    bytes: Option<u64>,
    /// Bytes at most of the frames that are no blocks and come before the next block.
    others_max: u64,
}

/// Bytes of a block's frame, at most.
fn frame_bytes_max(raw_bytes: u64) -> u64 {
    raw_bytes + (FRAME_HEADER_BYTES + BLOCK_HEADER_BYTES) as u64
}

/// The store bytes that extents may refer to: within the archive's stated reach, and within the memory for compressed copies.
pub(crate) struct ReachFloors {
    stated: ReachTracker,
    copies: ReachTracker,
}

/// How far back extents may refer, in bytes; `None` for any distance.
pub(crate) struct ReachLimits {
    /// In the archive.
    pub stated_bytes: Option<u64>,
    /// What one epoch can put between its references and the frame that holds them, in bytes of the archive.
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

    /// A block of so many raw bytes was filled while `epoch` was committed.
    pub(crate) fn block_filled(&mut self, epoch: u64, store_start: u64, raw_bytes: u64) {
        self.stated
            .filled(epoch, store_start, frame_bytes_max(raw_bytes));
        // Most copies are smaller than half of the block. Where the last few are not, memory is exceeded by the difference. With a
        // quarter instead of a half, and older copies evicted in exchange, 1 GB of kernel trees in 512 MiB took 90 s instead of 35,
        // since those blocks were decoded slowly again.
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

    /// The store offset below which `epoch` must not refer; `None` until every block that it depends on was encoded.
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
    /// What one epoch can put between its references and the frame that holds them, in bytes.
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

    /// A block was filled while `epoch` was committed, whose size will be `bytes_max` at most.
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

    /// Frames that are no blocks, of at most so many bytes, were put behind the last block.
    fn others(&mut self, bytes_max: u64) {
        if let Some(block) = self.blocks.back_mut() {
            block.others_max += bytes_max;
        }
    }

    /// A block is so many bytes long.
    fn encoded(&mut self, block: u64, bytes: u64) {
        let place = block
            .checked_sub(self.first_block)
            .map(|index| index as usize);
        if let Some(tracked) = place.and_then(|index| self.blocks.get_mut(index)) {
            tracked.bytes = Some(bytes);
        }
    }

    /// Whether every block that `epoch` needs to know was encoded.
    fn is_ready_for(&self, epoch: u64) -> bool {
        let old = self
            .blocks
            .iter()
            .take_while(|block| block.epoch + self.lag_epochs <= epoch);
        old.into_iter().all(|block| block.bytes.is_some())
    }

    /// Store bytes below this are out of reach for `epoch`. Never goes back.
    fn floor_for(&mut self, epoch: u64) -> u64 {
        let Some(reach_bytes) = self.reach_bytes else {
            return 0;
        };
        let mut distance = self.margin_bytes;
        let mut keep_from = self.blocks.len();
        for (index, block) in self.blocks.iter().enumerate().rev() {
            let is_old = block.epoch + self.lag_epochs <= epoch;
            distance +=
                block.others_max + block.bytes.filter(|_| is_old).unwrap_or(block.bytes_max);
            if distance > reach_bytes {
                break;
            }
            keep_from = index;
        }
        if let Some(block) = self.blocks.get(keep_from) {
            self.floor = self.floor.max(block.store_start);
        } else if let Some(block) = self.blocks.back() {
            self.floor = self.floor.max(block.store_start + block.bytes_max);
        }
        self.blocks.drain(..keep_from);
        self.first_block += keep_from as u64;
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_depends_on_epochs_and_not_on_when_blocks_are_encoded() {
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
    fn an_old_block_is_waited_for() {
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
