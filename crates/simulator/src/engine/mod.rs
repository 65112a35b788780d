//! The event loop: arrivals, starts and stops in the order of their times.

mod arrivals;
mod books;
mod dispatch;
mod progress;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use refrain_policy::SpinPolicy;
use refrain_policy::topology::{CpuId, Topology};
use refrain_policy::{Entity, Policy, View};

use super::machine::{Machine, Stripe};
use super::running::Running;
use super::{Costs, Error, Group, Random, Report};

/// More events than this are not simulated: a workload that never gets on ends as well.
const EVENTS_MAX: u64 = 400_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Work arrives for a flow from outside.
    Arrive { flow: usize },
    /// A worker that was told to wake up looks for work.
    Ready { cpu: CpuId },
    /// The flow of a CPU gets to where it ends or can be stopped; outdated if the CPU has planned another since.
    Progress { cpu: CpuId, plan: u64 },
    /// The governor looks at all cores.
    Govern,
}

#[derive(Debug)]
pub(super) struct Job {
    pub arrived_ns: u64,
    pub left_ns: u64,
    pub done_ns: u64,
    pub has_started: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asleep,
    Queued { since_ns: u64 },
    Running,
}

#[derive(Debug)]
struct Flow {
    entity: Entity,
    group: usize,
    /// Next in a ring.
    next: usize,
    jobs: VecDeque<Job>,
    state: State,
    has_run: bool,
    cpu_ns: u64,
    work_ns: u64,
}

#[derive(Debug, Default)]
struct Cpu {
    running: Option<Running>,
    /// Jobs that run below it: they go on when it is done.
    below: Vec<Running>,
    must_give_way: bool,
    is_waking: bool,
    idle_since_ns: u64,
    habit: SpinPolicy,
    /// How long it spins this time.
    spin_ns: u64,
    plan: u64,
    /// For the governor.
    busy_in_sample_ns: u64,
}

#[derive(Debug, Default)]
struct Samples {
    jobs: u64,
    waited_ns: Vec<u64>,
    responded_ns: Vec<u64>,
    longest_queued_ns: u64,
}

pub(super) struct Engine<'a, P> {
    policy: &'a P,
    costs: &'a Costs,
    groups: &'a [Group],
    machine: Machine,
    random: Random,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    stripes: Vec<Stripe>,
    flows: Vec<Flow>,
    cpus: Vec<Cpu>,
    samples: Vec<Samples>,
    queued: usize,
    waking: usize,
    report: Report,
}

impl<'a, P: Policy> Engine<'a, P> {
    pub fn new(
        policy: &'a P,
        topology: Topology,
        costs: &'a Costs,
        groups: &'a [Group],
        seed: u64,
    ) -> Self {
        let machine = Machine::new(policy, topology);
        let stripes = (0..machine.stripes()).map(|_| Stripe::default()).collect();
        let cpus = (0..machine.topology.len())
            .map(|_| Cpu::default())
            .collect();
        let mut engine = Engine {
            policy,
            costs,
            groups,
            machine,
            random: Random::new(seed),
            events: BinaryHeap::new(),
            sequence: 0,
            stripes,
            flows: Vec::new(),
            cpus,
            samples: groups.iter().map(|_| Samples::default()).collect(),
            queued: 0,
            waking: 0,
            report: Report::default(),
        };
        engine.make_flows();
        engine
    }

    /// Runs until `span_ns`.
    pub fn run(mut self, span_ns: u64) -> Result<Report, Error> {
        let mut events = 0u64;
        while let Some(Reverse((at_ns, _, event))) = self.events.pop() {
            let until_ns = at_ns.min(span_ns);
            if until_ns > self.machine.now_ns && self.is_unconserved() {
                self.report.unconserved_ns += until_ns - self.machine.now_ns;
            }
            self.machine.now_ns = until_ns;
            if at_ns >= span_ns {
                break;
            }
            events += 1;
            if events > EVENTS_MAX {
                return Err(Error::TooManyEvents {
                    max: EVENTS_MAX,
                    reached_ns: at_ns,
                });
            }
            match event {
                Event::Arrive { flow } => self.arrive_from_outside(flow),
                Event::Ready { cpu } => self.ready(cpu),
                Event::Progress { cpu, plan } if self.cpus[cpu.index()].plan == plan => {
                    self.progress(cpu)
                }
                Event::Progress { .. } => {}
                Event::Govern => self.govern(),
            }
        }
        self.machine.now_ns = span_ns;
        Ok(self.finish(span_ns))
    }

    fn plan(&mut self, at_ns: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at_ns, self.sequence, event)));
    }

    fn plan_in(&mut self, delay_ns: u64, event: Event) {
        self.plan(self.machine.now_ns.saturating_add(delay_ns), event);
    }
}
