//! Blocks whose reads failed: each failure would decode them again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_pool::Lock;

/// How many blocks are remembered; others are retried each time.
const BLOCKS_MAX: usize = 1 << 16;

/// How often reads of a block failed.
#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    count: u64,
    /// Whether nothing of it could be decoded the last time.
    is_lost: bool,
}

/// Blocks whose reads failed. They are retried, because a network may deliver the right bytes the
/// next time, but ever more rarely: after 1, 2, 4, 8, … failures. A page of 4 KiB from a damaged
/// block of 32 MiB took half a second each time.
#[derive(Default)]
pub(crate) struct FailedBlocks {
    /// Whether there are any, so that reads of intact archives take no lock.
    has_any: AtomicBool,
    blocks: Lock<HashMap<u64, Failures>>,
}

impl FailedBlocks {
    /// A read failed. Returns whether the next one should retry the block.
    pub(crate) fn add(&self, block: u64) -> bool {
        let mut blocks = self.blocks.lock();
        self.has_any.store(true, Ordering::Release);
        if blocks.len() >= BLOCKS_MAX && !blocks.contains_key(&block) {
            return true;
        }
        let failures = blocks.entry(block).or_default();
        failures.count += 1;
        failures.count.is_power_of_two()
    }

    /// Records whether nothing of a block could be decoded.
    pub(crate) fn decoded(&self, block: u64, is_lost: bool) {
        if !is_lost && !self.has_any.load(Ordering::Acquire) {
            return;
        }
        let mut blocks = self.blocks.lock();
        if is_lost && blocks.len() < BLOCKS_MAX {
            self.has_any.store(true, Ordering::Release);
            blocks.entry(block).or_default().is_lost = true;
        } else {
            if let Some(failures) = blocks.get_mut(&block) {
                failures.is_lost = is_lost;
            }
        }
    }

    /// Whether nothing of a block could be decoded the last time, and a retry is not due yet.
    pub(crate) fn is_lost(&self, block: u64) -> bool {
        self.has_any.load(Ordering::Acquire)
            && (self.blocks.lock().get(&block))
                .is_some_and(|failures| failures.is_lost && !failures.count.is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_fails_is_looked_at_ever_more_rarely() {
        let failed = FailedBlocks::default();
        assert!(!failed.is_lost(7));
        let mut looks = 0;
        for _ in 0..1000 {
            if !failed.is_lost(7) {
                looks += 1;
                failed.decoded(7, true);
            }
            failed.add(7);
        }
        assert_eq!(looks, 11);
        failed.decoded(7, false);
        assert!(!failed.is_lost(7) && !failed.is_lost(8));
        let again = (0..8).map(|_| failed.add(8)).collect::<Vec<_>>();
        assert_eq!(again, [true, true, false, true, false, false, false, true]);
    }
}
