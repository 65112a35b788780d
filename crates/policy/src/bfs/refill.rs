//! Sets deadlines and slices.

use super::ratios::{OFFSET_RATIOS, offset_of_ratio};
use super::{Base, Bfs, Tenants};
use crate::class::TenantId;
use crate::decision::Stop;
use crate::entity::{Entity, Latency};
use crate::view::View;

/// A slice with less than this left is used up: BFS's `RESCHED_US`. A shorter run does not pay for
/// its context switch.
const SLICE_END_NS: i64 = 100_000;

impl Bfs {
    /// The distance from the base to a flow's deadline, nanoseconds.
    pub fn offset_ns(&self, entity: &Entity) -> u64 {
        let ratio = OFFSET_RATIOS[entity.nice.index()];
        entity
            .latency
            .scale(offset_of_ratio(ratio, self.interval_ns))
    }

    /// A full slice, nanoseconds, at least 1.
    pub fn slice_ns(&self, entity: &Entity) -> u64 {
        // Interactive's share of 1 + i/2 or 1 + i, in halves.
        let share_halves = 2 + self.interactive as u64 * entity.latency.sensitivity();
        let slice_ns = entity.latency.scale(self.interval_ns);
        (slice_ns.saturating_mul(share_halves) / 2).max(1)
    }

    /// The smallest rest of a slice that is worth running, nanoseconds, at least 1.
    pub(super) fn slice_least_ns(&self, entity: &Entity) -> u64 {
        // At most half a slice; otherwise short slices could not be used at all.
        (self.slice_ns(entity) / 2).clamp(1, SLICE_END_NS as u64)
    }

    /// Whether less than [`Self::slice_least_ns`] is left. The first comparison is a fast path that
    /// excludes most flows.
    pub(super) fn is_slice_used(&self, entity: &Entity) -> bool {
        entity.slice_left_ns < SLICE_END_NS
            && entity.slice_left_ns < signed(self.slice_least_ns(entity))
    }

    /// [`Self::offset_ns`] times the number of the running flows of the flow's group.
    pub(super) fn group_offset_ns(&self, entity: &Entity, view: &impl View) -> u64 {
        let offset_ns = self.offset_ns(entity);
        let Tenants::ByOffset { flows_min } = self.tenants else {
            return offset_ns;
        };
        match view.running_flows(entity.tenant) {
            flows if flows >= flows_min.max(1) => offset_ns.saturating_mul(u64::from(flows)),
            _ => offset_ns,
        }
    }

    /// Counts the flow among the running flows of its group while it has more to do. Returns the
    /// change of their number.
    pub(super) fn count(&self, entity: &mut Entity, why: Stop) -> i32 {
        let counts = why != Stop::Blocked && matches!(self.tenants, Tenants::ByOffset { .. });
        let before = std::mem::replace(&mut entity.is_counted, counts);
        i32::from(counts) - i32::from(before)
    }

    /// The tenant whose virtual time and share of the processor the flow has.
    pub(super) fn tenant_of(&self, entity: &Entity) -> TenantId {
        match self.tenants {
            Tenants::Exact => entity.tenant,
            Tenants::Ignored | Tenants::ByOffset { .. } => TenantId::default(),
        }
    }

    /// The tenant whose account the flow's runs are charged to.
    pub(super) fn account_of(&self, entity: &Entity) -> TenantId {
        match self.tenants {
            Tenants::Exact | Tenants::ByOffset { .. } => entity.tenant,
            Tenants::Ignored => TenantId::default(),
        }
    }

    fn virtual_now_ns(&self, entity: &Entity, view: &impl View) -> u64 {
        match self.base {
            Base::Now => view.now_ns(),
            Base::Carry { .. } => view.frontier_ns(self.tenant_of(entity), entity.class),
        }
    }

    /// Sets the first deadline and slice. A child takes its parent's deadline and half of the
    /// parent's remaining slice, so that the total of waiting slices does not grow by forking.
    pub(super) fn refill_new(
        &self,
        entity: &mut Entity,
        parent: Option<&mut Entity>,
        view: &impl View,
    ) {
        entity.is_admitted = true;
        entity.is_sticky = false;
        entity.deadline_ns = self
            .virtual_now_ns(entity, view)
            .saturating_add(self.group_offset_ns(entity, view));
        entity.slice_left_ns = signed(self.slice_ns(entity));
        let Some(parent) = parent else { return };
        entity.last_cpu = parent.last_cpu;
        if parent.class != entity.class || self.tenant_of(parent) != self.tenant_of(entity) {
            return; // Deadlines of another virtual time are not comparable.
        }
        let least_ns = signed(self.slice_least_ns(parent));
        if parent.slice_left_ns >= 2 * least_ns {
            entity.deadline_ns = parent.deadline_ns;
            entity.slice_left_ns = parent.slice_left_ns / 2;
            parent.slice_left_ns -= entity.slice_left_ns;
        }
        // Otherwise there is too little to share: the child gets its own slice and deadline.
    }

    /// Sets a new deadline and slice if the old slice is used up. With [`Base::Now`], batch flows
    /// are refilled at every stop, as published.
    pub(super) fn refill_used(&self, entity: &mut Entity, view: &impl View) {
        let is_used = self.is_slice_used(entity)
            || self.base == Base::Now && entity.latency == Latency::Insensitive;
        if !is_used {
            return;
        }
        let least_ns = signed(self.slice_least_ns(entity));
        let (slice_ns, offset_ns) = (self.slice_ns(entity), self.group_offset_ns(entity, view));
        match self.base {
            Base::Now => {
                entity.deadline_ns = view.now_ns().saturating_add(offset_ns);
                entity.slice_left_ns = signed(slice_ns);
            }
            Base::Carry { lag_max_ns } => {
                // A flow that ran for several slices pays for several, so that a flow that never
                // stops in time gains nothing. The rest of the slice is kept for the same reason.
                let missing_ns = (least_ns - entity.slice_left_ns).unsigned_abs();
                let slices = missing_ns.div_ceil(slice_ns);
                let earliest_ns = self.virtual_now_ns(entity, view).saturating_sub(lag_max_ns);
                entity.deadline_ns = entity
                    .deadline_ns
                    .max(earliest_ns)
                    .saturating_add(offset_ns.saturating_mul(slices));
                entity.slice_left_ns = entity
                    .slice_left_ns
                    .saturating_add(signed(slice_ns.saturating_mul(slices)));
            }
        }
    }
}

fn signed(value_ns: u64) -> i64 {
    i64::try_from(value_ns).unwrap_or(i64::MAX)
}
