//! Chooses the CPU or stripe for a flow, and the stripe for a worker.

use super::{Bfs, PreferredStripe};
use crate::affinity::{allowed_here, is_allowed_here};
use crate::class::Class;
use crate::decision::Placement;
use crate::entity::{Entity, Latency};
use crate::key::{Key, Rank};
use crate::policy::Policy;
use crate::topology::{CpuId, CpuMask, StripeId};
use crate::view::View;

/// Penalties of an idle CPU; the CPU with the smallest sum is chosen. Values and order come from
/// BFS (`best_mask_cpu`): another core of the same cache before the sibling of a busy core,
/// anything before another node.
mod penalty {
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
    ) -> Placement {
        entity.is_sticky = false;
        if view.has_idle()
            && let Some(cpu) = best_idle(entity.last_cpu, &view.idle(), entity, view)
        {
            return Placement::Idle(cpu);
        }
        let queue_cpu = queue_cpu(entity.last_cpu, waker, entity, view);
        let may_preempt = entity.latency != Latency::Insensitive
            && self.key(entity, view).class() != Some(Class::Idle);
        if is_sync || !may_preempt {
            // A waker that is about to stop picks from the queue itself.
            return Placement::Queue(view.stripe_of(queue_cpu));
        }
        match self.preemption_victim(entity, waker, &allowed_here(entity, view), view) {
            Some(cpu) => Placement::Preempt(cpu),
            None => Placement::Queue(view.stripe_of(queue_cpu)),
        }
    }

    /// A stopped flow is queued where it ran, because its data is in that cache. It goes to the
    /// nearest idle CPU instead if it may not run here, or if this CPU takes another flow next.
    pub(super) fn place_stopped(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        view: &impl View,
    ) -> Placement {
        let idle = if !view.has_idle() { None } else { best_idle(cpu, &view.idle(), entity, view) };
        let own = self.rank(self.key(entity, view), view);
        let takes_another = || {
            let next = self.pick_stripe(cpu, &CpuMask::EMPTY, view);
            // Among equals the waiting flow comes first.
            next.is_some_and(|stripe| self.rank(view.best_key(stripe), view) <= own)
        };
        match idle {
            Some(idle) if !is_allowed_here(entity, cpu, view) || takes_another() => {
                entity.is_sticky = false;
                Placement::Idle(idle)
            }
            _ => Placement::Queue(view.stripe_of(queue_cpu(cpu, None, entity, view))),
        }
    }

    /// The allowed CPU that runs the flow with the latest deadline, if that is later than the
    /// deadline of `entity`. Among equals the waker's CPU.
    fn preemption_victim(
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

    /// Deadlines decide preemption, not the CPU time of tenants: otherwise a flow of a tenant with
    /// little CPU time would preempt at every wake-up. Which flow gets the CPU next is decided
    /// again when it is free.
    fn preemption_rank(&self, key: Key, view: &impl View) -> Rank {
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
        let is_candidate = |stripe: &StripeId| {
            !tried.contains(CpuId::new(stripe.index())) && view.best_key(*stripe).is_some()
        };
        let rank_of = |stripe: StripeId| self.rank(view.best_key(stripe), view);
        let all = (0..view.stripes())
            .map(StripeId::new)
            .filter(|stripe| *stripe != own);
        let mut best = Some(own)
            .filter(is_candidate)
            .map(|stripe| (rank_of(stripe), stripe));
        for stripe in all.filter(is_candidate) {
            let rank = rank_of(stripe);
            let is_better = match (best, self.preferred_stripe) {
                (None, _) => true,
                (Some((than, _)), PreferredStripe::Earliest) => rank < than,
                (Some((than, from)), PreferredStripe::Own) => {
                    rank < than && view.queued(stripe) > view.queued(from)
                }
            };
            if is_better {
                best = Some((rank, stripe));
            }
        }
        best.map(|(_, stripe)| stripe)
    }

    /// Hard and soft affinity. If CPUs prefer their own stripes, one that runs slowly does not take
    /// a flow that was preempted elsewhere: moving it off a core that is speeding up would leave
    /// both cores slow.
    #[inline]
    pub(super) fn is_eligible(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        let sticks_elsewhere = entity.is_sticky && entity.last_cpu != cpu;
        is_allowed_here(entity, cpu, view)
            && !(sticks_elsewhere
                && self.preferred_stripe == PreferredStripe::Own
                && view.is_scaled_down(cpu))
    }
}

/// The CPU to queue at if none is idle: the flow's last CPU, else the waker's, else the flow's
/// first allowed one.
#[inline]
fn queue_cpu(last: CpuId, waker: Option<CpuId>, entity: &Entity, view: &impl View) -> CpuId {
    if is_allowed_here(entity, last, view) {
        return last;
    }
    waker
        .filter(|cpu| is_allowed_here(entity, *cpu, view))
        .or_else(|| allowed_here(entity, view).iter().next())
        .unwrap_or_default()
}

/// The best idle CPU for a flow that ran on `last`; among equals the fastest, then the one with the
/// lowest number.
fn best_idle(last: CpuId, idle: &CpuMask, entity: &Entity, view: &impl View) -> Option<CpuId> {
    let usable = idle.and(&allowed_here(entity, view));
    if usable.contains(last) {
        return Some(last);
    }
    let cpus = view.topology().cpus();
    let slowness = |cpu: CpuId| cpus.get(cpu.index()).map(|cpu| u16::MAX - cpu.capacity);
    usable
        .iter()
        .min_by_key(|&cpu| (penalty(cpu, last, idle, view), slowness(cpu), cpu))
}

fn penalty(cpu: CpuId, last: CpuId, idle: &CpuMask, view: &impl View) -> u32 {
    let topology = view.topology();
    let when = |condition: bool, cost: u32| if condition { cost } else { 0 };
    let core = topology.core_of(cpu);
    let cache = topology.cache_of(cpu);
    when(core.contains(last) && cpu != last, penalty::OTHER_THREAD)
        | when(!core.contains(last), penalty::OTHER_CORE)
        | when(!cache.is_subset_of(idle), penalty::CACHE_BUSY)
        | when(!cache.contains(last), penalty::OTHER_CACHE)
        | when(!core.is_subset_of(idle), penalty::SIBLING_BUSY)
        | when(view.is_scaled_down(cpu), penalty::SCALED_DOWN)
        | when(!topology.node_of(cpu).contains(last), penalty::OTHER_NODE)
}
