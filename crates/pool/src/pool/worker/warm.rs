//! Handles of flows that ran on a worker lately, kept for when they are woken there again.
//!
//! A flow that is queued or runs is held by a handle. To make one for each wake-up and drop it at each stop takes two read-modify-writes (10 ns
//! together) on a line that others who hold the flow write too. Flows that wake each other on one worker, a pipeline's stages, come again
//! soon; so the worker keeps the handle of a flow that went to sleep until another takes its slot, or until it has nothing to do. For so long, at
//! most, lives a flow that nobody holds any more.

use std::cell::Cell;
use std::sync::Arc;

use crate::pool::flow::Flow;

/// Direct-mapped, so that keeping and finding take one slot each. A collision costs what it saves.
const SLOTS: usize = 32;

/// See the head of the file.
#[derive(Default)]
pub(super) struct Warm {
    slots: [Cell<Option<Flow>>; SLOTS],
}

impl Warm {
    fn slot(&self, flow: &Flow) -> &Cell<Option<Flow>> {
        // Fibonacci hashing (Knuth, TAOCP 3, 6.4): the upper bits of the product depend on all bits of the address.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let address = Arc::as_ptr(&flow.inner).addr() as u64;
        let hash = address.wrapping_mul(GOLDEN) >> (u64::BITS - SLOTS.ilog2());
        &self.slots[hash as usize % SLOTS]
    }

    /// Keeps the handle of a flow that went to sleep.
    pub(super) fn keep(&self, flow: Flow) {
        self.slot(&flow).set(Some(flow));
    }

    /// A handle of `flow`, if one was kept.
    pub(super) fn take(&self, flow: &Flow) -> Option<Flow> {
        let slot = self.slot(flow);
        let kept = slot.take()?;
        if Arc::ptr_eq(&kept.inner, &flow.inner) {
            return Some(kept);
        }
        slot.set(Some(kept));
        None
    }

    /// Lets go of all.
    pub(super) fn let_go(&self) {
        self.slots.iter().for_each(|slot| drop(slot.take()));
    }
}
