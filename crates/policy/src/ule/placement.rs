//! `sched_pickcpu`, `cpu_search` and `tdq_idled`: chooses the least loaded CPU, preferring near
//! ones.

use std::cmp::Reverse;

use super::Ule;
use crate::affinity::allowed_here;
use crate::decision::Placement;
use crate::entity::Entity;
use crate::policy::Policy;
use crate::topology::{CpuId, CpuMask, Locality, StripeId};
use crate::view::View;

/// The weight of a queued or running flow, and of the preference for a CPU (FreeBSD: 256 and 64).
const LOAD_UNIT: usize = 256;
const PREFERENCE: usize = 64;
/// Waiting flows that a CPU must have before another CPU steals one. A CPU on another core leaves
/// it one flow.
const STEAL_FROM: usize = 2;
const STEAL_FROM_SIBLING: usize = 1;

fn load(cpu: CpuId, view: &impl View) -> usize {
    view.queued(view.stripe_of(cpu)) + usize::from(view.running(cpu).is_some())
}

impl Ule {
    pub(super) fn place_by_load(
        &self,
        entity: &Entity,
        waker: Option<CpuId>,
        last_ran_ns: u64,
        view: &impl View,
    ) -> Placement {
        let allowed = allowed_here(entity, view);
        let cpu = self.search(entity, last_ran_ns, &allowed, view);
        if view.idle().contains(cpu) {
            return Placement::Idle(cpu);
        }
        let (own, running) = (self.key(entity, view), view.running(cpu));
        let is_better = own < running;
        // Only an interactive flow preempts another CPU, and only a flow that is not interactive.
        let is_worth_it =
            waker == Some(cpu) || (Ule::is_interactive(own) && !Ule::is_interactive(running));
        if is_better && is_worth_it {
            Placement::Preempt(cpu)
        } else {
            Placement::Queue(view.stripe_of(cpu))
        }
    }

    fn search(
        &self,
        entity: &Entity,
        last_ran_ns: u64,
        allowed: &CpuMask,
        view: &impl View,
    ) -> CpuId {
        let (last, idle, topology) = (entity.last_cpu, view.idle(), view.topology());
        let away_ns = view.now_ns().saturating_sub(last_ran_ns);
        let is_warm = |level: Locality| away_ns < self.affinity_ns.saturating_mul(level as u64 + 1);
        let core = topology.core_of(last);
        if allowed.contains(last)
            && idle.contains(last)
            && is_warm(Locality::Sibling)
            && core.is_subset_of(&idle)
        {
            return last;
        }
        let own = self.key(entity, view);
        let runs_now = |cpu: CpuId| idle.contains(cpu) || own < view.running(cpu);
        let warmest = [
            (core, Locality::Sibling),
            (topology.cache_of(last), Locality::Cache),
        ]
        .into_iter()
        .filter(|(_, level)| is_warm(*level))
        .filter_map(|(group, _)| least_loaded(&group.and(allowed), last, view))
        .find(|&cpu| runs_now(cpu));
        let ready: CpuMask = allowed.iter().filter(|&cpu| runs_now(cpu)).collect();
        warmest
            .or_else(|| least_loaded(&ready, last, view))
            .or_else(|| least_loaded(allowed, last, view))
            .unwrap_or_default()
    }

    pub(super) fn own_or_stolen(
        &self,
        cpu: CpuId,
        tried: &CpuMask,
        view: &impl View,
    ) -> Option<StripeId> {
        let is_open = |stripe: StripeId| !tried.contains(CpuId::new(stripe.index()));
        let own = view.stripe_of(cpu);
        if is_open(own) && view.best_key(own).is_some() {
            return Some(own);
        }
        // The nearest first; within a level the CPU with the most waiting flows. One pass, so no
        // list is allocated.
        let topology = view.topology();
        let mut best: Option<(Locality, usize, StripeId)> = None;
        for other in topology.all().iter().filter(|other| *other != cpu) {
            let stripe = view.stripe_of(other);
            let (level, waiting) = (topology.locality(cpu, other), view.queued(stripe));
            let least = if level == Locality::Sibling { STEAL_FROM_SIBLING } else { STEAL_FROM };
            // A flow that waits at an idle CPU is about to run there, but has not been taken yet.
            let is_worth_it = waiting >= least || (waiting > 0 && load(other, view) > waiting);
            let is_better = best
                .is_none_or(|(than, most, _)| level < than || (level == than && waiting > most));
            if is_open(stripe) && is_worth_it && is_better {
                best = Some((level, waiting, stripe));
            }
        }
        best.map(|(_, _, stripe)| stripe)
    }

    /// `sched_balance`: the CPU with the most load and the one with the least, if they differ. If a
    /// move only exchanges their loads, it still gives the flows of the fuller CPU turns on their
    /// own.
    pub(super) fn unbalanced(&self, moved: &CpuMask, view: &impl View) -> Option<(CpuId, CpuId)> {
        let left = || {
            view.topology()
                .all()
                .iter()
                .filter(|cpu| !moved.contains(*cpu))
        };
        let has_waiting = |cpu: &CpuId| view.queued(view.stripe_of(*cpu)) > 0;
        let by_load = |cpu: &CpuId| (load(*cpu, view), Reverse(*cpu));
        let high = left().filter(has_waiting).max_by_key(by_load)?;
        let low = left().min_by_key(|cpu| (load(*cpu, view), *cpu))?;
        (load(high, view) > load(low, view)).then_some((high, low))
    }
}

/// The CPU of `group` with the least load and the least loaded core; among equals the preferred
/// one.
fn least_loaded(group: &CpuMask, preferred: CpuId, view: &impl View) -> Option<CpuId> {
    let around = |cpu: CpuId| {
        let core = view.topology().core_of(cpu);
        core.iter()
            .map(|sibling| load(sibling, view))
            .sum::<usize>()
    };
    let cost = |&cpu: &CpuId| {
        let own = load(cpu, view) * LOAD_UNIT + PREFERENCE;
        let preference = if cpu == preferred { PREFERENCE } else { 0 };
        (around(cpu), own - preference, cpu)
    };
    group.iter().min_by_key(cost)
}
