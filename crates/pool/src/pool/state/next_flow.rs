//! The flow that a job has handed over ([`Flow::hand_over`]): it runs next, on the same worker,
//! unless something else precedes it.
//!
//! The policy grants its slice under the lock under which it is woken. So it runs without taking
//! its lock again, and its job is never put into its mailbox: the job counts as started. If the
//! flow does not run next after all, everything is undone: the job goes to the front of the
//! mailbox, the flow into a stripe, and the grant, which was not charged yet, is void.

use std::cell::Cell;

use refrain_policy::{Class, Grant, Key, Nice, TenantId};

use super::domain::Flow;
use crate::pool::job::JobBody;

/// Room for one flow. Each field is a separate cell: if they were filled and emptied as a whole,
/// byte-sized fields would be read as part of a vector before the processor has put them together,
/// and each such read stalls for about 4 ns.
#[derive(Default)]
pub(crate) struct NextFlow {
    flow: Cell<Option<Flow>>,
    body: Cell<Option<JobBody>>,
    key: Cell<u64>,
    nice: Cell<Nice>,
    slice_ns: Cell<u64>,
    start_ns: Cell<u64>,
    tenant_time_ns: Cell<u64>,
    tenant: Cell<TenantId>,
    class: Cell<Option<Class>>,
}

impl NextFlow {
    /// Stores a flow whose phase is RUNNING. There must be none yet.
    pub(crate) fn fill(&self, flow: Flow, body: JobBody, key: Key, nice: Nice, grant: &Grant) {
        self.flow.set(Some(flow));
        self.body.set(Some(body));
        self.key.set(key.bits());
        self.nice.set(nice);
        self.slice_ns.set(grant.slice_ns);
        self.start_ns.set(grant.start_ns);
        self.tenant_time_ns.set(grant.tenant_time_ns);
        self.tenant.set(grant.tenant);
        self.class.set(Some(grant.class));
    }

    pub(crate) fn is_filled(&self) -> bool {
        let flow = self.flow.take();
        let is_filled = flow.is_some();
        self.flow.set(flow);
        is_filled
    }

    /// Takes the flow and its first job. The other fields keep their values until the next
    /// [`NextFlow::fill`].
    pub(crate) fn take(&self) -> Option<(Flow, JobBody)> {
        Some((self.flow.take()?, self.body.take()?))
    }

    pub(crate) fn key(&self) -> Key {
        Key::from_bits(self.key.get())
    }

    pub(crate) fn nice(&self) -> Nice {
        self.nice.get()
    }

    pub(crate) fn grant(&self) -> Grant {
        Grant {
            slice_ns: self.slice_ns.get(),
            start_ns: self.start_ns.get(),
            class: self.class.get().unwrap_or(Class::Normal),
            tenant: self.tenant.get(),
            tenant_time_ns: self.tenant_time_ns.get(),
        }
    }
}
