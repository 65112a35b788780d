//! Support for tests of policies: a view of fixed answers and a minimal driver.

use crate::class::{Class, TenantId};
use crate::decision::Stop;
use crate::entity::Entity;
use crate::key::Key;
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::topology::{CAPACITY_MAX, Cpu, CpuId, CpuMask, StripeId, Topology};
use crate::view::View;

pub const MS: u64 = 1_000_000;

/// A view whose answers are its fields.
pub struct FixedView {
    pub now_ns: u64,
    pub topology: Topology,
    pub idle: CpuMask,
    pub running: Vec<Key>,
    pub scaled_down: CpuMask,
    pub stripes: Vec<StripeId>,
    pub queues: Vec<(Key, usize)>,
    /// The interactivity score of each queued flow.
    pub score: u64,
    pub ledger: Ledger,
}

impl FixedView {
    pub fn new(policy: &impl Policy, topology: Topology) -> FixedView {
        let stripes = topology.stripes(policy.sharing());
        let stripe_count = stripes.iter().max().map_or(0, |last| last.index() + 1);
        FixedView {
            now_ns: 0,
            idle: topology.all(),
            running: vec![Key::NONE; topology.len()],
            scaled_down: CpuMask::EMPTY,
            stripes,
            queues: vec![(Key::NONE, 0); stripe_count],
            score: 100,
            ledger: policy.ledger(topology.len()),
            topology,
        }
    }

    /// All CPUs run normal flows with these deadlines.
    pub fn busy(mut self, deadlines_ns: &[u64]) -> FixedView {
        self.idle = CpuMask::EMPTY;
        let key = |deadline: &u64| Key::new(Class::Normal, TenantId::default(), *deadline);
        self.running = deadlines_ns.iter().map(key).collect();
        self
    }
}

impl View for FixedView {
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
        self.running[cpu.index()]
    }
    fn is_scaled_down(&self, cpu: CpuId) -> bool {
        self.scaled_down.contains(cpu)
    }
    fn stripes(&self) -> usize {
        self.queues.len()
    }
    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        self.stripes[cpu.index()]
    }
    fn best_key(&self, stripe: StripeId) -> Key {
        self.queues[stripe.index()].0
    }
    fn queued(&self, stripe: StripeId) -> usize {
        self.queues[stripe.index()].1
    }
    fn queued_score(&self, stripe: StripeId) -> u64 {
        self.queued(stripe) as u64 * self.score
    }
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// Two nodes of two caches of two cores of two threads. The bits of a CPU number are node, cache,
/// core, thread.
pub fn sixteen_cpus() -> Topology {
    let cpu = |index: u16| Cpu {
        os_number: u32::from(index),
        core: index >> 1,
        cache: index >> 2,
        node: index >> 3,
        capacity: CAPACITY_MAX,
    };
    Topology::new((0..16).map(cpu).collect())
}

/// Runs CPU-bound flows on one CPU for `span_ns`. Returns how long each ran. The queue is a list
/// that is searched linearly, and every slice is overrun by `overrun_ns`.
pub fn run_cpu_bound(
    policy: &impl Policy,
    flows: Vec<Entity>,
    span_ns: u64,
    overrun_ns: u64,
) -> Vec<u64> {
    let mut view = FixedView::new(policy, Topology::flat(1)).busy(&[0]);
    let mut flows: Vec<(Entity, u64)> = flows.into_iter().map(|flow| (flow, 0)).collect();
    for (flow, _) in &mut flows {
        policy.admit(flow, None, &view);
    }
    // The waiting flows in the order in which they were queued.
    let mut waiting: Vec<usize> = (0..flows.len()).collect();
    while view.now_ns < span_ns {
        let rank = |index: &usize| {
            let key = policy.key(&flows[*index].0, &view);
            (policy.rank(key, &view), key)
        };
        let (at, _) = waiting
            .iter()
            .enumerate()
            .min_by_key(|(_, index)| rank(index))
            .unwrap();
        let index = waiting.remove(at);
        let (flow, used_ns) = &mut flows[index];
        let grant = policy.run(flow, CpuId::FIRST, &view);
        view.ledger.dispatched(&grant);
        let ran_ns = grant.slice_ns.min(MS * 1000) + overrun_ns;
        view.now_ns += ran_ns;
        *used_ns += ran_ns;
        let charge = policy.stop(flow, CpuId::FIRST, ran_ns, Stop::Expired, &view);
        view.ledger.ran(&charge);
        let _ = policy.requeue(flow, CpuId::FIRST, &view);
        waiting.push(index);
    }
    flows.into_iter().map(|(_, used_ns)| used_ns).collect()
}
