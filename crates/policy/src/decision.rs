//! Where a policy places a flow, and why a flow stops.

use crate::topology::{CpuId, StripeId};
use crate::view::View;

/// Why a flow stops running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// Its slice is used up; it has more to do.
    Expired,
    /// It yielded; it has more to do.
    Yielded,
    /// Another flow took its CPU; it has more to do.
    Preempted,
    /// It has nothing to do or waits for something.
    Blocked,
}

/// Where a runnable flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// To this idle CPU: queue the flow in the CPU's stripe and wake the worker.
    Idle(CpuId),
    /// To this busy CPU: queue the flow in the CPU's stripe and request that the flow that runs
    /// there yields at its next checkpoint.
    Preempt(CpuId),
    /// Into this stripe; no worker needs to be notified.
    Queue(StripeId),
}

impl Placement {
    /// The stripe to queue in.
    pub fn stripe(self, view: &impl View) -> StripeId {
        match self {
            Placement::Idle(cpu) | Placement::Preempt(cpu) => view.stripe_of(cpu),
            Placement::Queue(stripe) => stripe,
        }
    }
}
