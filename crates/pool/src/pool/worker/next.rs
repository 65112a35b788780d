//! The flow that a job has woken with its last act ([`Flow::hand_over`]): it runs next, on the same worker, unless something else comes first.
//!
//! What it needs to run has been asked of the policy under the lock under which it was woken; so it runs without its lock being taken again, and
//! its job never lies in its mailbox. The job counts as begun. If it does not come next after all, all of it goes back: the job to the
//! front of the mailbox, the flow into a stripe; its leave to run was not booked and does not count.

use std::cell::Cell;

use refrain_policy::{Class, Grant, Key, Nice, TenantId};

use crate::pool::flow::Flow;
use crate::pool::job::Body;

/// A place for one flow. Each field on its own: filled and emptied as a whole, fields of a byte would be read as part of a vector before the
/// processor has put them together, and each such read waits for some 4 ns.
#[derive(Default)]
pub(crate) struct NextFlow {
    flow: Cell<Option<Flow>>,
    body: Cell<Option<Body>>,
    key: Cell<u64>,
    nice: Cell<Nice>,
    slice_ns: Cell<u64>,
    start_ns: Cell<u64>,
    tenant_time_ns: Cell<u64>,
    tenant: Cell<TenantId>,
    class: Cell<Option<Class>>,
}

impl NextFlow {
    /// Puts a flow here that is RUNNING by its state; the place has to be empty.
    pub(crate) fn fill(&self, flow: Flow, body: Body, key: Key, nice: Nice, grant: &Grant) {
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

    /// Whether a flow is here.
    pub(super) fn is_filled(&self) -> bool {
        let flow = self.flow.take();
        let is_filled = flow.is_some();
        self.flow.set(flow);
        is_filled
    }

    /// The flow and its first job, if one is here. What is told of it below stays until the next one comes.
    pub(super) fn take(&self) -> Option<(Flow, Body)> {
        Some((self.flow.take()?, self.body.take()?))
    }

    /// Under which key it is queued and shown.
    pub(super) fn key(&self) -> Key {
        Key::from_bits(self.key.get())
    }

    pub(super) fn nice(&self) -> Nice {
        self.nice.get()
    }

    /// Its leave to run, to be booked when it does.
    pub(super) fn grant(&self) -> Grant {
        Grant {
            slice_ns: self.slice_ns.get(),
            start_ns: self.start_ns.get(),
            class: self.class.get().unwrap_or(Class::Normal),
            tenant: self.tenant.get(),
            tenant_time_ns: self.tenant_time_ns.get(),
        }
    }
}
