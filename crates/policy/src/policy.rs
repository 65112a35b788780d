//! The interface of a scheduling policy.

use crate::accounting::{Charge, Grant};
use crate::decision::{Placement, Stop};
use crate::entity::Entity;
use crate::key::{Key, Rank};
use crate::ledger::Ledger;
use crate::topology::{CpuId, CpuMask, Sharing, StripeId};
use crate::view::View;

/// The scheduling decisions. Implemented by [`Bfs`](crate::Bfs) and, for comparison, by others.
pub trait Policy {
    /// Returns the accounts for a driver with this number of CPUs.
    fn ledger(&self, cpus: usize) -> Ledger;

    /// Which CPUs share a stripe.
    fn sharing(&self) -> Sharing;

    /// Initializes a new flow, before any other call with it. A flow with a parent shares what the
    /// parent has left, so that creating flows gains no CPU time.
    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View);

    /// The key by which to queue the flow and to publish it while it runs.
    fn key(&self, entity: &Entity, view: &impl View) -> Key;

    /// The current rank of a key, comparable with ranks of other lanes and stripes. Within a lane
    /// keys and ranks have the same order.
    fn rank(&self, key: Key, view: &impl View) -> Rank;

    /// Decides where a sleeping flow goes when work arrives for it. `waker` is the CPU that the
    /// work comes from, if it belongs to the driver. `is_sync` says that the waker is about to
    /// stop.
    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Placement;

    /// Decides where a flow goes that [stopped](Policy::stop) on `cpu` with work left, or that
    /// [`balance`](Policy::balance) has moved there.
    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Placement;

    /// The stripe from which a free CPU takes its next flow. Excludes the stripes in `tried`, where
    /// it found nothing.
    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId>;

    /// The mean time between two rounds of [`balance`](Policy::balance), nanoseconds; `None` if the
    /// policy needs none.
    fn balance_interval_ns(&self) -> Option<u64> {
        None
    }

    /// The CPUs from and to which a queued flow should move. The driver asks again, with both in
    /// `moved`, until there are none.
    fn balance(&self, _moved: &CpuMask, _view: &impl View) -> Option<(CpuId, CpuId)> {
        None
    }

    /// Whether a CPU may take this queued flow now. If not, the driver tries the next flow.
    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool;

    /// The flow starts to run on `cpu`.
    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant;

    /// The flow stops after it ran for `ran_ns` on `cpu`. Only this call refills slices.
    fn stop(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge;
}
