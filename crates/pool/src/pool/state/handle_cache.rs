//! Cached handles of flows that a worker ran lately, for when they are woken there again.
//!
//! A queued or running flow is owned by a handle. Making one for each wake-up and dropping it at
//! each stop takes two read-modify-writes (10 ns together) on a cache line that the flow's other
//! owners write too. Flows that wake each other on one worker, such as the stages of a pipeline,
//! come again soon. So the worker caches the handle of a flow that goes to sleep, until another
//! flow takes its slot or the worker has nothing to do. A flow without other handles lives that
//! long at most.

use std::cell::Cell;
use std::sync::Arc;

use super::domain::Flow;

/// Direct-mapped, so that caching and finding take one slot each. A collision only costs what the
/// cache would have saved.
const SLOTS: usize = 32;

#[derive(Default)]
pub(crate) struct HandleCache {
    slots: [Cell<Option<Flow>>; SLOTS],
}

impl HandleCache {
    fn slot(&self, flow: &Flow) -> &Cell<Option<Flow>> {
        // Fibonacci hashing (Knuth, TAOCP 3, 6.4): the upper bits of the product depend on all
        // bits of the address.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let address = Arc::as_ptr(&flow.shared).addr() as u64;
        let hash = address.wrapping_mul(GOLDEN) >> (u64::BITS - SLOTS.ilog2());
        &self.slots[hash as usize % SLOTS]
    }

    pub(crate) fn put(&self, flow: Flow) {
        self.slot(&flow).set(Some(flow));
    }

    pub(crate) fn take_or_clone(&self, flow: &Flow) -> Flow {
        let slot = self.slot(flow);
        match slot.take() {
            Some(cached) if Arc::ptr_eq(&cached.shared, &flow.shared) => cached,
            other => {
                slot.set(other);
                flow.clone()
            }
        }
    }

    pub(crate) fn clear(&self) {
        self.slots.iter().for_each(|slot| drop(slot.take()));
    }
}
