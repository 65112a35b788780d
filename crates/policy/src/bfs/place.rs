//! Where a flow goes, and where a worker looks.

use super::super::{
    Class, Entity, Latency, Place, Policy, Rank, View, allowed_here, is_allowed_here,
};
use super::{Bfs, Interactive};
use crate::topology::{CpuId, CpuMask, StripeId};

/// What speaks against an idle CPU; the sum decides, the least is best. The values and their order are BFS's
/// (`best_mask_cpu`): another core with the same cache before a busy core's sibling, anything before another node.
mod against {
    pub const OTHER_THREAD: u32 = 1;
    pub const OTHER_CORE: u32 = 2;
    pub const CACHE_BUSY: u32 = 4;
    pub const OTHER_CACHE: u32 = 8;
    pub const SIBLING_BUSY: u32 = 16;
    pub const SCALED_DOWN: u32 = 32;
    pub const OTHER_NODE: u32 = 64;
}

impl Bfs {
    #[inline]
    pub(super) fn place_woken(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Place {
        entity.is_sticky = false;
        if view.has_idle()
            && let Some(cpu) = best_idle(entity.last_cpu, &view.idle(), entity, view)
        {
            return Place::Idle(cpu);
        }
        let home = home(entity.last_cpu, waker, entity, view);
        let may_preempt =
            entity.latency != Latency::Batch && self.key(entity, view).class() != Some(Class::Idle);
        if is_sync || !may_preempt {
            // A waker that is about to stop looks at the queue itself.
            return Place::Queue(view.stripe_of(home));
        }
        match self.latest(entity, waker, &allowed_here(entity, view), view) {
            Some(cpu) => Place::Preempt(cpu),
            None => Place::Queue(view.stripe_of(home)),
        }
    }

    /// After a stop the flow waits where it ran, so that its cache stays near. Unless it may not run there, or this CPU takes
    /// another one next and there is an idle CPU: then it goes to the nearest.
    pub(super) fn place_stopped(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Place {
        let idle = match view.has_idle() {
            false => None,
            true => best_idle(cpu, &view.idle(), entity, view),
        };
        let own = self.rank(self.key(entity, view), view);
        let takes_another = || {
            let next = self.pick_stripe(cpu, &CpuMask::EMPTY, view);
            // Among equals who waits already comes first.
            next.is_some_and(|stripe| self.rank(view.best_key(stripe), view) <= own)
        };
        match idle {
            Some(idle) if !is_allowed_here(entity, cpu, view) || takes_another() => {
                entity.is_sticky = false;
                Place::Idle(idle)
            }
            _ => Place::Queue(view.stripe_of(home(cpu, None, entity, view))),
        }
    }

    /// The allowed CPU whose flow is to run latest, if later than `entity`; all else equal, the waker's.
    fn latest(
        &self,
        entity: &Entity,
        waker: Option<CpuId>,
        allowed: &CpuMask,
        view: &impl View,
    ) -> Option<CpuId> {
        let rank_on = |cpu: CpuId| (self.preemption_rank(view.running(cpu), view), cpu);
        let mut worst = waker.filter(|cpu| allowed.contains(*cpu)).map(rank_on);
        for (rank, cpu) in allowed.iter().map(rank_on) {
            if worst.is_none_or(|(than, _)| rank > than) {
                worst = Some((rank, cpu));
            }
        }
        let own = self.preemption_rank(self.key(entity, view), view);
        worst.filter(|(rank, _)| own < *rank).map(|(_, cpu)| cpu)
    }

    /// For preemption the deadline decides, not what tenants have had: else a flow of a poor tenant would interrupt at every
    /// wake-up. Who gets the CPU next is decided again when it is free.
    fn preemption_rank(&self, key: super::Key, view: &impl View) -> Rank {
        Rank {
            tenant_time_ns: 0,
            ..self.rank(key, view)
        }
    }

    pub(super) fn pick_stripe(
        &self,
        cpu: CpuId,
        tried: &CpuMask,
        view: &impl View,
    ) -> Option<StripeId> {
        let own = view.stripe_of(cpu);
        let is_open = |stripe: &StripeId| {
            !tried.contains(CpuId::new(stripe.index())) && view.best_key(*stripe).is_some()
        };
        let rank_of = |stripe: StripeId| self.rank(view.best_key(stripe), view);
        let all = (0..view.stripes())
            .map(StripeId::new)
            .filter(|stripe| *stripe != own);
        let mut best = Some(own)
            .filter(is_open)
            .map(|stripe| (rank_of(stripe), stripe));
        for stripe in all.filter(is_open) {
            let rank = rank_of(stripe);
            let is_better = match (best, self.interactive) {
                (None, _) => true,
                (Some((than, _)), Interactive::Deadlines | Interactive::Strict) => rank < than,
                (Some((than, from)), Interactive::Throughput) => {
                    rank < than && view.queued(stripe) > view.queued(from)
                }
            };
            if is_better {
                best = Some((rank, stripe));
            }
        }
        best.map(|(_, stripe)| stripe)
    }

    /// Affinity, hard and soft. A flow that was preempted elsewhere is left there by a CPU that runs slowly, when caches
    /// matter more than deadlines: bouncing off a core that is speeding up would keep both slow.
    #[inline]
    pub(super) fn suits(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        let sticks_elsewhere = entity.is_sticky && entity.last_cpu != cpu;
        is_allowed_here(entity, cpu, view)
            && !(sticks_elsewhere
                && self.interactive == Interactive::Throughput
                && view.is_scaled_down(cpu))
    }
}

/// The CPU to queue at when none is idle: where the flow ran, else where it is woken from, else its first.
#[inline]
fn home(last: CpuId, waker: Option<CpuId>, entity: &Entity, view: &impl View) -> CpuId {
    if is_allowed_here(entity, last, view) {
        return last;
    }
    waker
        .filter(|cpu| is_allowed_here(entity, *cpu, view))
        .or_else(|| allowed_here(entity, view).iter().next())
        .unwrap_or_default()
}

/// The best idle CPU for a flow that ran on `last`; among equals the fastest, then the first.
fn best_idle(last: CpuId, idle: &CpuMask, entity: &Entity, view: &impl View) -> Option<CpuId> {
    let usable = idle.and(&allowed_here(entity, view));
    if usable.contains(last) {
        return Some(last);
    }
    let cpus = view.topology().cpus();
    let slowness = |cpu: CpuId| cpus.get(cpu.index()).map(|cpu| u16::MAX - cpu.capacity);
    usable
        .iter()
        .min_by_key(|&cpu| (score(cpu, last, idle, view), slowness(cpu), cpu))
}

/// What speaks against an idle CPU for a flow that ran on `last`.
fn score(cpu: CpuId, last: CpuId, idle: &CpuMask, view: &impl View) -> u32 {
    let topology = view.topology();
    let when = |condition: bool, cost: u32| if condition { cost } else { 0 };
    let core = topology.core_of(cpu);
    let cache = topology.cache_of(cpu);
    when(core.contains(last) && cpu != last, against::OTHER_THREAD)
        | when(!core.contains(last), against::OTHER_CORE)
        | when(!cache.is_subset_of(idle), against::CACHE_BUSY)
        | when(!cache.contains(last), against::OTHER_CACHE)
        | when(!core.is_subset_of(idle), against::SIBLING_BUSY)
        | when(view.is_scaled_down(cpu), against::SCALED_DOWN)
        | when(!topology.node_of(cpu).contains(last), against::OTHER_NODE)
}
