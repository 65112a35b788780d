//! Deadlines and slices: when they are set, and to what.

use super::super::{Entity, Latency, Nice, TenantId, View};
use super::{Base, Bfs};

/// Deadline offsets by nice value, in 128ths of the interval: each 11/10 of the one before, in integers, as BFS has them.
pub const OFFSET_RATIOS: [u64; Nice::COUNT] = {
    let mut ratios = [128; Nice::COUNT];
    let mut index = 1;
    while index < Nice::COUNT {
        ratios[index] = ratios[index - 1] * 11 / 10;
        index += 1;
    }
    ratios
};
const RATIO_UNIT: u64 = OFFSET_RATIOS[0];
/// The published values at −20, 0 and 19.
const _: () = assert!(OFFSET_RATIOS[0] == 128 && RATIO_NICE_0 == 836 && OFFSET_RATIOS[39] == 5089);

pub(super) const RATIO_NICE_0: u64 = OFFSET_RATIOS[20];

/// With less than this left a slice is over: BFS's `RESCHED_US`. A run that short does not pay for its switch.
const SLICE_END_NS: i64 = 100_000;

pub(super) const fn offset_of_ratio(ratio: u64, interval_ns: u64) -> u64 {
    interval_ns.saturating_mul(ratio) / RATIO_UNIT
}

impl Bfs {
    /// How far after its base a flow's deadline lies, nanoseconds.
    pub fn offset_ns(&self, entity: &Entity) -> u64 {
        let ratio = OFFSET_RATIOS[entity.nice.index()];
        entity
            .latency
            .scale(offset_of_ratio(ratio, self.interval_ns))
    }

    /// A full slice, nanoseconds; at least 1.
    pub fn slice_ns(&self, entity: &Entity) -> u64 {
        entity.latency.scale(self.interval_ns).max(1)
    }

    /// What has to be left of a slice to be worth running, nanoseconds; at least 1.
    pub(super) fn slice_least_ns(&self, entity: &Entity) -> u64 {
        // Never more than half a slice, else short slices could not be used at all.
        (self.slice_ns(entity) / 2).clamp(1, SLICE_END_NS as u64)
    }

    /// Whether less than that is left. Mostly more is than any slice has to have, and that is seen first.
    pub(super) fn is_slice_used(&self, entity: &Entity) -> bool {
        entity.slice_left_ns < SLICE_END_NS
            && entity.slice_left_ns < signed(self.slice_least_ns(entity))
    }

    pub(super) fn tenant_of(&self, entity: &Entity) -> TenantId {
        if self.has_tenants {
            entity.tenant
        } else {
            TenantId::default()
        }
    }

    /// Where the virtual time of the flow's tenant and class is.
    fn virtual_now_ns(&self, entity: &Entity, view: &impl View) -> u64 {
        match self.base {
            Base::Now => view.now_ns(),
            Base::Carry { .. } => view.frontier_ns(self.tenant_of(entity), entity.class),
        }
    }

    /// First deadline and slice. A child takes its parent's deadline and half of what it has left: the slice that waits in
    /// the system does not grow by forking.
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
            .saturating_add(self.offset_ns(entity));
        entity.slice_left_ns = signed(self.slice_ns(entity));
        let Some(parent) = parent else { return };
        entity.last_cpu = parent.last_cpu;
        if parent.class != entity.class || self.tenant_of(parent) != self.tenant_of(entity) {
            return; // deadlines of another virtual time mean nothing here
        }
        let least_ns = signed(self.slice_least_ns(parent));
        if parent.slice_left_ns >= 2 * least_ns {
            entity.deadline_ns = parent.deadline_ns;
            entity.slice_left_ns = parent.slice_left_ns / 2;
            parent.slice_left_ns -= entity.slice_left_ns;
        }
        // Else there is too little to share: the child waits for its turn with a slice and a deadline of its own.
    }

    /// A new deadline and slice if the old slice is used up; with [`Base::Now`], as published, for batch flows at every stop.
    pub(super) fn refill_used(&self, entity: &mut Entity, view: &impl View) {
        let is_used = self.is_slice_used(entity)
            || self.base == Base::Now && entity.latency == Latency::Batch;
        if !is_used {
            return;
        }
        let least_ns = signed(self.slice_least_ns(entity));
        let (slice_ns, offset_ns) = (self.slice_ns(entity), self.offset_ns(entity));
        match self.base {
            Base::Now => {
                entity.deadline_ns = view.now_ns().saturating_add(offset_ns);
                entity.slice_left_ns = signed(slice_ns);
            }
            Base::Carry { lag_max_ns } => {
                // Who ran for several slices pays for several: a flow that never stops in time gets no more than others. What was
                // left is kept, for the same reason.
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
