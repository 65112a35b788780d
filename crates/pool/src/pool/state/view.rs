//! The pool as the policy sees it: everything is read from atomics, without a lock.

use std::sync::Arc;

use refrain_policy::topology::{CpuId, CpuMask, StripeId, Topology};
use refrain_policy::{Key, Ledger, Policy};

use super::domain::{Domain, Flow};
use super::turn_limit::TurnLimit;

/// A domain at one moment: the time of a view does not advance.
pub(crate) struct View<'a> {
    domain: &'a Domain,
    pub(crate) now_ns: u64,
}

impl Domain {
    pub(crate) fn view_at(&self, now_ns: u64) -> View<'_> {
        View {
            domain: self,
            now_ns,
        }
    }
}

impl Flow {
    /// Whether the policy lets the worker `cpu` take this flow.
    pub(crate) fn is_allowed(&self, policy: &impl Policy, view: &View<'_>, cpu: CpuId) -> bool {
        policy.may_take(&self.shared.state.lock().entity, cpu, view)
    }

    /// Counts a turn of a parallel flow; returns false if the limit of its group is reached. On top
    /// of a flow of its own group it is not counted again.
    pub(crate) fn try_begin_turn(&self, running: Option<&Flow>) -> bool {
        let group = &self.shared.group;
        running.is_some_and(|running| Arc::ptr_eq(group, &running.shared.group))
            || group.limit().is_none_or(TurnLimit::try_begin)
    }

    /// Whether this flow, which precedes `running`, may run on top of it. Flows that are not more
    /// urgent by their properties only do on top of long jobs of other groups: otherwise jobs that
    /// end soon would pile up on a worker for nothing, and those of one run with the memory of
    /// each.
    pub(crate) fn may_run_on_top(&self, running: &Flow, is_long: bool) -> bool {
        let is_other = || !Arc::ptr_eq(&self.shared.group, &running.shared.group);
        is_long && is_other() || self.entity().is_more_urgent_than(&running.entity())
    }
}

impl refrain_policy::View for View<'_> {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn topology(&self) -> &Topology {
        &self.domain.topology
    }

    fn idle(&self) -> CpuMask {
        self.domain.idle.mask()
    }

    fn has_idle(&self) -> bool {
        !self.domain.idle.is_empty()
    }

    fn running(&self, cpu: CpuId) -> Key {
        let worker = self.domain.workers.get(cpu.index());
        worker.map_or(Key::NONE, |worker| worker.running())
    }

    // The processor's frequency is not read: each wake-up would have to read a file of sysfs.
    fn is_scaled_down(&self, _: CpuId) -> bool {
        false
    }

    fn stripes(&self) -> usize {
        self.domain.stripes.len()
    }

    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        let stripe = self.domain.stripe_of.get(cpu.index());
        stripe.copied().unwrap_or_default()
    }

    fn best_key(&self, stripe: StripeId) -> Key {
        let stripe = self.domain.stripes.get(stripe.index());
        stripe.map_or(Key::NONE, |stripe| stripe.best_key())
    }

    fn queued(&self, stripe: StripeId) -> usize {
        let stripe = self.domain.stripes.get(stripe.index());
        stripe.map_or(0, |stripe| stripe.length())
    }

    fn ledger(&self) -> &Ledger {
        &self.domain.ledger
    }
}
