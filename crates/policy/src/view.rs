//! What a policy may ask of the machine and of its driver.

use super::{Class, Key, Ledger, Nice, TenantId};
use crate::topology::{CpuId, CpuMask, StripeId, Topology};

/// The world as a driver (pool, simulator) sees it at the moment of a decision.
///
/// Answers may be stale: a worker called idle may have found work since, a stripe's best key may be taken. A policy must
/// give some sensible decision on any answers; drivers must check again what matters when they act on it. Answers within one
/// call need not agree with each other.
///
/// "CPU" means a worker with its place in the topology; a pool with fewer workers than CPUs shows a smaller topology.
pub trait View {
    /// Time, nanoseconds; never goes back by more than the clocks of two workers differ.
    fn now_ns(&self) -> u64;

    /// The machine; the same for as long as the driver lives.
    fn topology(&self) -> &Topology;

    /// Workers that have nothing to run.
    fn idle(&self) -> CpuMask;

    /// Whether any is. Drivers that know without making the mask say so.
    fn has_idle(&self) -> bool {
        !self.idle().is_empty()
    }

    /// Key of the flow that runs there; [`Key::NONE`] when none does.
    fn running(&self, cpu: CpuId) -> Key;

    /// Nice value of the flow that runs there; anything when none does.
    fn running_nice(&self, cpu: CpuId) -> Nice;

    /// Whether the CPU runs well below its full speed, to save power.
    fn is_scaled_down(&self, cpu: CpuId) -> bool;

    /// How many stripes there are; at least one.
    fn stripes(&self) -> usize;

    /// The stripe that a CPU takes its work from first.
    fn stripe_of(&self, cpu: CpuId) -> StripeId;

    /// Key of the first flow of a stripe; [`Key::NONE`] when it is empty.
    fn best_key(&self, stripe: StripeId) -> Key;

    /// How many flows wait in a stripe.
    fn queued(&self, stripe: StripeId) -> usize;

    /// The accounts. The driver keeps one ledger and applies to it what the policy returns; the policy only reads.
    fn ledger(&self) -> &Ledger;

    /// Virtual time of a tenant's class. See [`Ledger::frontier_ns`].
    fn frontier_ns(&self, tenant: TenantId, class: Class) -> u64 {
        self.ledger().frontier_ns(tenant, class)
    }

    /// Time a tenant has had, divided by its weight. See [`Ledger::tenant_time_ns`].
    fn tenant_time_ns(&self, tenant: TenantId, class: Class) -> u64 {
        self.ledger().tenant_time_ns(tenant, class)
    }

    /// Whether isochronous flows have used more than their share lately. See [`Ledger::is_iso_refractory`].
    fn is_iso_refractory(&self) -> bool {
        self.ledger().is_iso_refractory(self.now_ns())
    }
}

/// Whether anything but background work runs: a flow of nice 0 or less, above the idle class. BFS's `above_background_load`:
/// what may wait (scrubbing, compaction, prefetching) asks before it begins.
pub fn is_above_background(view: &impl View) -> bool {
    let is_foreground = |cpu: CpuId| {
        let class = view.running(cpu).class();
        class.is_some_and(|class| class != Class::Idle) && view.running_nice(cpu) <= Nice::default()
    };
    view.topology().all().iter().any(is_foreground)
}
