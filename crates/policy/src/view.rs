//! The machine and the driver's state, as a policy reads them.

use crate::class::{Class, TenantId};
use crate::entity::History;
use crate::key::Key;
use crate::ledger::Ledger;
use crate::topology::{CpuId, CpuMask, StripeId, Topology};

/// The state of the driver (pool or simulator) at the moment of a decision.
///
/// Answers may be stale: a worker reported as idle may have found work since, and a stripe's best
/// key may have been taken. A policy must return a valid decision for any answers, and a driver
/// that acts on the decision must check again whatever it depends on. The answers within one call
/// need not be consistent with each other.
///
/// "CPU" means a worker with its position in the topology. A pool with fewer workers than CPUs
/// presents a smaller topology.
pub trait View {
    /// The time in nanoseconds. It never goes back by more than the clocks of two workers differ.
    fn now_ns(&self) -> u64;

    /// The machine. It does not change during the life of the driver.
    fn topology(&self) -> &Topology;

    /// The workers that have nothing to run.
    fn idle(&self) -> CpuMask;

    /// Whether any worker is idle. Drivers override it if they can answer without building the
    /// mask.
    fn has_idle(&self) -> bool {
        !self.idle().is_empty()
    }

    /// The key of the flow that runs on `cpu`, or [`Key::NONE`] if none does.
    fn running(&self, cpu: CpuId) -> Key;

    /// Whether the CPU runs well below its full frequency to save power.
    fn is_scaled_down(&self, cpu: CpuId) -> bool;

    /// The number of stripes, at least one.
    fn stripes(&self) -> usize;

    /// The stripe that a CPU takes its work from first.
    fn stripe_of(&self, cpu: CpuId) -> StripeId;

    /// The key of the first flow of a stripe, or [`Key::NONE`] if the stripe is empty.
    fn best_key(&self, stripe: StripeId) -> Key;

    /// The number of flows that wait in a stripe.
    fn queued(&self, stripe: StripeId) -> usize;

    /// The sum of the [interactivity scores](crate::interactivity) of the flows that wait in a
    /// stripe. Drivers that do not know it count each flow as one that only runs.
    fn queued_score(&self, stripe: StripeId) -> u64 {
        self.queued(stripe) as u64 * u64::from(History::SCORE_MAX)
    }

    /// The accounts. The driver owns one ledger and applies to it what the policy returns; the
    /// policy only reads it.
    fn ledger(&self) -> &Ledger;

    /// The virtual time of a tenant's class. See [`Ledger::frontier_ns`].
    fn frontier_ns(&self, tenant: TenantId, class: Class) -> u64 {
        self.ledger().frontier_ns(tenant, class)
    }

    /// The CPU time of a tenant divided by its weight. See [`Ledger::tenant_time_ns`].
    fn tenant_time_ns(&self, tenant: TenantId, class: Class) -> u64 {
        self.ledger().tenant_time_ns(tenant, class)
    }

    /// The number of a tenant's running flows. See [`Ledger::running_flows`].
    fn running_flows(&self, tenant: TenantId) -> u32 {
        self.ledger().running_flows(tenant)
    }

    /// Whether isochronous flows have exceeded their share recently. See
    /// [`Ledger::is_iso_refractory`].
    fn is_iso_refractory(&self) -> bool {
        self.ledger().is_iso_refractory(self.now_ns())
    }
}
