//! The reach that epochs need: from the oldest block that an epoch uses to the frame that completes
//! it.

use std::collections::VecDeque;
use std::ops::Range;

use crate::archive::REACH_UNLIMITED;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;

use super::epoch_sums::EpochSums;

/// An epoch that is incomplete or unobserved.
#[derive(Debug, Clone)]
struct PendingEpoch {
    header: ExtentsHeader,
    /// The archive offset of the end of the frame that completes it.
    completed_at: Option<u64>,
    /// The lowest store offset that it uses, once observed.
    lowest: Option<Option<u64>>,
}

/// Measures the reach that the epochs of an archive need.
#[derive(Debug, Clone)]
pub(super) struct NeededReach {
    /// `None`: nothing is measured.
    promised_bytes: Option<u64>,
    /// (store start, frame offset) of the blocks within reach.
    blocks: VecDeque<(u64, u64)>,
    /// In file order; so complete epochs come first, and so do observed ones.
    epochs: VecDeque<PendingEpoch>,
    observed_count: usize,
    store_bytes: u64,
    needed_bytes: u64,
}

impl NeededReach {
    pub(super) fn unmeasured() -> Self {
        Self {
            promised_bytes: None,
            blocks: VecDeque::new(),
            epochs: VecDeque::new(),
            observed_count: 0,
            store_bytes: 0,
            needed_bytes: 0,
        }
    }

    /// Starts measuring, for an archive that promises this reach.
    pub(super) fn measure(&mut self, promised_bytes: u64) {
        self.promised_bytes = Some(promised_bytes);
    }

    pub(super) fn is_measured(&self) -> bool {
        self.promised_bytes.is_some()
    }

    pub(super) fn needed_bytes(&self) -> u64 {
        self.needed_bytes
    }

    #[cfg(test)]
    pub(super) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Forgets complete epochs: observers have observed them by now.
    pub(super) fn forget_complete(&mut self) {
        let is_complete = |epoch: &mut PendingEpoch| epoch.completed_at.is_some();
        while self.epochs.pop_front_if(is_complete).is_some() {
            self.observed_count = self.observed_count.saturating_sub(1);
        }
    }

    /// Adds a block with the store range `store`, whose frame is at `frame` in the archive.
    pub(super) fn block(&mut self, store: Range<u64>, frame: Range<u64>) -> Result<()> {
        self.store_bytes = store.end;
        if let Some(promised) = self.promised_bytes {
            // Later epochs are completed after this frame begins, so a block that is out of
            // reach now stays out of reach.
            let oldest = frame.start.saturating_sub(promised);
            let is_out = |&mut (_, offset): &mut (u64, u64)| offset < oldest;
            while self.blocks.pop_front_if(is_out).is_some() {}
            self.blocks.push_back((store.start, frame.start));
        }
        let store_bytes = self.store_bytes;
        let mut lowest = Vec::new();
        // Epochs are completed in order. Look only at those up to the first incomplete one:
        // there may be very many.
        let epochs = self.epochs.iter_mut();
        for epoch in epochs.take_while(|epoch| epoch.header.store_end() <= store_bytes) {
            if epoch.completed_at.is_none() {
                epoch.completed_at = Some(frame.end);
                lowest.extend(epoch.lowest.flatten());
            }
        }
        // Among the epochs that this block completes, the one with the oldest block needs most.
        match lowest.into_iter().min() {
            Some(lowest) => self.check(lowest, frame.end),
            None => Ok(()),
        }
    }

    /// Adds an epoch whose frame ends at `frame_end` in the archive.
    pub(super) fn epoch(&mut self, header: &ExtentsHeader, frame_end: u64) {
        let is_complete = header.store_end() <= self.store_bytes;
        self.epochs.push_back(PendingEpoch {
            header: *header,
            completed_at: is_complete.then_some(frame_end),
            lowest: None,
        });
    }

    /// Sets the sums of the first unobserved epoch. Returns its header; `None` if there is no such
    /// epoch.
    pub(super) fn observe(&mut self, sums: &EpochSums) -> Result<Option<ExtentsHeader>> {
        let Some(epoch) = self.epochs.get_mut(self.observed_count) else {
            return Ok(None);
        };
        self.observed_count += 1;
        let header = epoch.header;
        let first_fresh = (header.fresh_bytes > 0).then_some(header.store_start);
        let used = [sums.lowest_source, first_fresh].into_iter().flatten();
        let lowest = used.min();
        epoch.lowest = Some(lowest);
        if let (Some(lowest), Some(completed_at)) = (lowest, epoch.completed_at) {
            self.check(lowest, completed_at)?;
        }
        Ok(Some(header))
    }

    fn check(&mut self, lowest: u64, completed_at: u64) -> Result<()> {
        let Some(promised) = self.promised_bytes else {
            return Ok(());
        };
        let after = self.blocks.partition_point(|&(start, _)| start <= lowest);
        let block = after.checked_sub(1).and_then(|at| self.blocks.get(at));
        // An evicted block is out of reach: the distance to the archive's start is a safe
        // overestimate.
        let needed = completed_at.saturating_sub(block.map_or(0, |&(_, offset)| offset));
        if needed > promised {
            debug_assert_ne!(promised, REACH_UNLIMITED);
            return Err(FormatError::Value {
                what: "reach needed by an epoch in bytes",
                value: needed,
                rule: "at most the reach that the archive promises",
            });
        }
        self.needed_bytes = self.needed_bytes.max(needed);
        Ok(())
    }
}
