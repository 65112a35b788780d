//! The simulated machine as a view for the policy, and its stripes.

use std::collections::{BTreeMap, BTreeSet};

use refrain_policy::topology::{CpuId, CpuMask, StripeId, Topology};
use refrain_policy::{Entity, Key, Ledger, Policy, Rank, View, interactivity};

use crate::costs::PERMILLE;

/// The state that the [`View`] is computed from; never stale.
#[derive(Debug)]
pub(super) struct Machine {
    pub now_ns: u64,
    pub topology: Topology,
    pub idle: CpuMask,
    pub running: Vec<Key>,
    frequency_permille: Vec<u32>,
    stripe_of: Vec<StripeId>,
    published: Vec<Summary>,
    ledger: Ledger,
}

/// What other CPUs see of a stripe.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Summary {
    best: Key,
    length: usize,
    score: u64,
}

impl Machine {
    pub fn new(policy: &impl Policy, topology: Topology) -> Machine {
        let stripe_of = topology.stripes(policy.sharing());
        let stripes = stripe_of.iter().max().map_or(1, |last| last.index() + 1);
        Machine {
            now_ns: 0,
            idle: topology.all(),
            running: vec![Key::NONE; topology.len()],
            frequency_permille: vec![PERMILLE; topology.len()],
            stripe_of,
            published: vec![Summary::default(); stripes],
            ledger: policy.ledger(topology.len()),
            topology,
        }
    }

    pub fn set_running(&mut self, cpu: CpuId, key: Key) {
        self.running[cpu.index()] = key;
    }

    /// Sets the frequency of a CPU, thousandths of its full one.
    pub fn set_frequency(&mut self, cpu: CpuId, permille: u32) {
        self.frequency_permille[cpu.index()] = permille;
    }

    pub fn frequency_permille(&self, cpu: CpuId) -> u32 {
        self.frequency_permille[cpu.index()]
    }

    pub fn publish(&mut self, stripe: StripeId, summary: Summary) {
        self.published[stripe.index()] = summary;
    }

    fn of<R: Default>(&self, stripe: StripeId, field: impl FnOnce(&Summary) -> R) -> R {
        self.published
            .get(stripe.index())
            .map_or_else(R::default, field)
    }
}

impl View for Machine {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
    fn topology(&self) -> &Topology {
        &self.topology
    }
    fn idle(&self) -> CpuMask {
        self.idle
    }
    fn running(&self, cpu: CpuId) -> Key {
        self.running.get(cpu.index()).copied().unwrap_or(Key::NONE)
    }
    fn is_scaled_down(&self, cpu: CpuId) -> bool {
        self.frequency_permille(cpu) < PERMILLE
    }
    fn stripes(&self) -> usize {
        self.published.len()
    }
    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        self.stripe_of.get(cpu.index()).copied().unwrap_or_default()
    }
    fn best_key(&self, stripe: StripeId) -> Key {
        self.of(stripe, |summary| summary.best)
    }
    fn queued(&self, stripe: StripeId) -> usize {
        self.of(stripe, |summary| summary.length)
    }
    fn queued_score(&self, stripe: StripeId) -> u64 {
        self.of(stripe, |summary| summary.score)
    }
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// A run queue: a sorted set per lane, which is the simplest structure with the required order, and
/// its lock as a time.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    lanes: BTreeMap<usize, BTreeSet<(Key, u64, usize)>>,
    length: usize,
    /// The sum of the flows' interactivity scores.
    score: u64,
    free_at_ns: u64,
}

impl Stripe {
    /// Queues flow `flow`. Equal keys leave in the order of `sequence`.
    pub fn push(&mut self, key: Key, sequence: u64, flow: usize, entity: &Entity) {
        let Some(lane) = key.lane() else { return };
        let lane = self.lanes.entry(lane).or_default();
        if lane.insert((key, sequence, flow)) {
            self.length += 1;
            self.score += score(entity);
        }
    }

    /// Takes a flow out of the stripe. Returns whether it was there.
    pub fn remove(&mut self, flow: usize, entity: &Entity) -> bool {
        let entries = self.lanes.values().flatten();
        let entry = entries.copied().find(|(_, _, queued)| *queued == flow);
        entry.is_some_and(|entry| self.take(&entry, entity))
    }

    fn take(&mut self, entry: &(Key, u64, usize), entity: &Entity) -> bool {
        let lane = entry.0.lane();
        let Some((lane, rest)) = lane.and_then(|lane| Some((lane, self.lanes.get_mut(&lane)?)))
        else {
            return false;
        };
        let is_taken = rest.remove(entry);
        if rest.is_empty() {
            self.lanes.remove(&lane);
        }
        if is_taken {
            self.length -= 1;
            self.score -= score(entity);
        }
        is_taken
    }

    /// Removes the first flow in rank that may run on `cpu`, if its rank is below `limit`.
    pub fn pop<'a>(
        &mut self,
        policy: &impl Policy,
        view: &impl View,
        cpu: CpuId,
        entity: impl Fn(usize) -> &'a Entity,
        limit: Rank,
    ) -> Option<usize> {
        let eligible = |lane: &BTreeSet<(Key, u64, usize)>| {
            lane.iter()
                .copied()
                .find(|(_, _, flow)| policy.may_take(entity(*flow), cpu, view))
        };
        let firsts = self.lanes.values().filter_map(eligible);
        let best = firsts.min_by_key(|first| (policy.rank(first.0, view), *first))?;
        if policy.rank(best.0, view) >= limit {
            return None;
        }
        self.take(&best, entity(best.2)).then_some(best.2)
    }

    /// The key of the first flow in rank, the number of flows and the sum of their scores.
    pub fn summary(&self, policy: &impl Policy, view: &impl View) -> Summary {
        let firsts = self.lanes.values().filter_map(|lane| lane.first());
        let best = firsts.min_by_key(|first| (policy.rank(first.0, view), **first));
        Summary {
            best: best.map_or(Key::NONE, |first| first.0),
            length: self.length,
            score: self.score,
        }
    }

    pub fn flows(&self) -> impl Iterator<Item = usize> {
        self.lanes.values().flatten().map(|(_, _, flow)| *flow)
    }

    /// Takes the lock at `now_ns` for `held_ns`. Returns the time until it is released.
    pub fn lock(&mut self, now_ns: u64, held_ns: u64) -> u64 {
        self.free_at_ns = self.free_at_ns.max(now_ns).saturating_add(held_ns);
        self.free_at_ns - now_ns
    }
}

fn score(entity: &Entity) -> u64 {
    u64::from(interactivity(&entity.history))
}

#[cfg(test)]
mod tests {
    use refrain_policy::{Class, TenantId};

    use super::*;

    #[test]
    fn a_stripe_knows_the_sum_of_the_scores_of_its_flows() {
        let mut stripe = Stripe::default();
        let flow = |ran_ns: u64, slept_ns: u64| {
            let mut entity = Entity::new(Class::Normal);
            (entity.history.ran_ns, entity.history.slept_ns) = (ran_ns, slept_ns);
            entity
        };
        let key = |deadline_ns: u64| Key::new(Class::Normal, TenantId::default(), deadline_ns);
        let flows = [flow(1000, 0), flow(1000, 1000), flow(1000, 2000)];
        for (index, entity) in flows.iter().enumerate() {
            stripe.push(key(index as u64 * 1000), index as u64, index, entity);
        }
        assert_eq!((stripe.length, stripe.score), (3, 100 + 50 + 25));
        assert!(stripe.remove(1, &flows[1]) && !stripe.remove(1, &flows[1]));
        assert_eq!((stripe.length, stripe.score), (2, 125));
        assert_eq!(stripe.flows().collect::<Vec<_>>(), [0, 2]);
    }
}
