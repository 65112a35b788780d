//! `sched_pickcpu`, `cpu_search` and `tdq_idled`: the CPU with the least to do, the nearer the better.

use super::super::{Entity, Place, Policy, View, allowed_here};
use super::Ule;
use crate::topology::{CpuId, CpuMask, Locality, StripeId};

/// Weight of one queued or running flow against the preference for a CPU (FreeBSD: 256 and 64).
const LOAD_UNIT: usize = 256;
const PREFERENCE: usize = 64;
/// Waiting flows that a CPU must have before another takes one away: it needs one for itself unless they share a core.
const STEAL_FROM: usize = 2;
const STEAL_FROM_SIBLING: usize = 1;

fn load(cpu: CpuId, view: &impl View) -> usize {
    view.queued(view.stripe_of(cpu)) + usize::from(view.running(cpu).is_some())
}

impl Ule {
    pub(super) fn place(
        &self,
        entity: &Entity,
        waker: Option<CpuId>,
        last_ran_ns: u64,
        view: &impl View,
    ) -> Place {
        let allowed = allowed_here(entity, view);
        let cpu = self.search(entity, last_ran_ns, &allowed, view);
        if view.idle().contains(cpu) {
            return Place::Idle(cpu);
        }
        let (own, running) = (self.key(entity, view), view.running(cpu));
        let is_better = own < running;
        // Another CPU is interrupted for an interactive flow only, and only if what runs there is not.
        let is_worth_it =
            waker == Some(cpu) || (Ule::is_interactive(own) && !Ule::is_interactive(running));
        if is_better && is_worth_it {
            Place::Preempt(cpu)
        } else {
            Place::Queue(view.stripe_of(cpu))
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
        // Nearest first; among CPUs of a level the one with the most waiting. One pass, so no list has to be made.
        let topology = view.topology();
        let mut best: Option<(Locality, usize, StripeId)> = None;
        for other in topology.all().iter().filter(|other| *other != cpu) {
            let stripe = view.stripe_of(other);
            let (level, waiting) = (topology.locality(cpu, other), view.queued(stripe));
            let least = if level == Locality::Sibling {
                STEAL_FROM_SIBLING
            } else {
                STEAL_FROM
            };
            // A waiting flow whose CPU is idle is not that CPU's for long, but it is nobody's yet.
            let is_worth_it = waiting >= least || (waiting > 0 && load(other, view) > waiting);
            let is_better = best
                .is_none_or(|(than, most, _)| level < than || (level == than && waiting > most));
            if is_open(stripe) && is_worth_it && is_better {
                best = Some((level, waiting, stripe));
            }
        }
        best.map(|(_, _, stripe)| stripe)
    }
}

/// The CPU of `group` with the least load in the least loaded surroundings; the preferred one among equals.
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
