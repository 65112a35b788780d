//! The simulated machine as a view for the policy, and its stripes.

use std::collections::{BTreeMap, BTreeSet};

use refrain_policy::topology::{CpuId, CpuMask, StripeId, Topology};
use refrain_policy::{Entity, Key, Ledger, Nice, Policy, Rank, View};

/// How many entries of a lane are tried for one that may run here, as in MuQSS.
const TRIED_MAX: usize = 16;

/// The state that the [`View`] is computed from; never stale.
#[derive(Debug)]
pub(super) struct Machine {
    pub now_ns: u64,
    pub topology: Topology,
    pub idle: CpuMask,
    pub running: Vec<Key>,
    pub nice: Vec<Nice>,
    pub slow: CpuMask,
    stripe_of: Vec<StripeId>,
    published: Vec<(Key, usize)>,
    ledger: Ledger,
}

impl Machine {
    pub fn new(policy: &impl Policy, topology: Topology) -> Machine {
        let stripe_of = topology.stripes(policy.sharing());
        let stripes = stripe_of.iter().max().map_or(1, |last| last.index() + 1);
        Machine {
            now_ns: 0,
            idle: topology.all(),
            running: vec![Key::NONE; topology.len()],
            nice: vec![Nice::default(); topology.len()],
            slow: CpuMask::EMPTY,
            stripe_of,
            published: vec![(Key::NONE, 0); stripes],
            ledger: policy.ledger(topology.len()),
            topology,
        }
    }

    pub fn set_running(&mut self, cpu: CpuId, key: Key, nice: Nice) {
        self.running[cpu.index()] = key;
        self.nice[cpu.index()] = nice;
    }

    pub fn publish(&mut self, stripe: StripeId, best: Key, length: usize) {
        self.published[stripe.index()] = (best, length);
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
    fn running_nice(&self, cpu: CpuId) -> Nice {
        self.nice.get(cpu.index()).copied().unwrap_or_default()
    }
    fn is_scaled_down(&self, cpu: CpuId) -> bool {
        self.slow.contains(cpu)
    }
    fn stripes(&self) -> usize {
        self.published.len()
    }
    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        self.stripe_of.get(cpu.index()).copied().unwrap_or_default()
    }
    fn best_key(&self, stripe: StripeId) -> Key {
        self.published
            .get(stripe.index())
            .map_or(Key::NONE, |published| published.0)
    }
    fn queued(&self, stripe: StripeId) -> usize {
        self.published
            .get(stripe.index())
            .map_or(0, |published| published.1)
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
    free_at_ns: u64,
}

impl Stripe {
    /// Queues flow `flow`. Equal keys leave in the order of `sequence`.
    pub fn push(&mut self, key: Key, sequence: u64, flow: usize) {
        let Some(lane) = key.lane() else { return };
        self.length += usize::from(
            self.lanes
                .entry(lane)
                .or_default()
                .insert((key, sequence, flow)),
        );
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
            let near = lane.iter().take(TRIED_MAX);
            near.copied()
                .find(|(_, _, flow)| policy.may_take(entity(*flow), cpu, view))
        };
        let firsts = self.lanes.values().filter_map(eligible);
        let best = firsts.min_by_key(|first| (policy.rank(first.0, view), *first))?;
        if policy.rank(best.0, view) >= limit {
            return None;
        }
        let lane = best.0.lane()?;
        let rest = self.lanes.get_mut(&lane)?;
        self.length -= usize::from(rest.remove(&best));
        if rest.is_empty() {
            self.lanes.remove(&lane);
        }
        Some(best.2)
    }

    /// The key of the first flow in rank, and the number of flows.
    pub fn summary(&self, policy: &impl Policy, view: &impl View) -> (Key, usize) {
        let firsts = self.lanes.values().filter_map(|lane| lane.first());
        let best = firsts.min_by_key(|first| (policy.rank(first.0, view), **first));
        (best.map_or(Key::NONE, |first| first.0), self.length)
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
