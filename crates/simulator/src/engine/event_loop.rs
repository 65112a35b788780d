//! The engine and its loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use refrain_policy::topology::Topology;
use refrain_policy::{Policy, View};

use super::machine::{Machine, Stripe};
use super::state::{Cpu, Flow, Samples, SimulatedEvent};
use crate::costs::Costs;
use crate::error::Error;
use crate::random::Random;
use crate::report::Report;
use crate::workload::Group;

/// The largest number of events, so that a workload without progress terminates.
const EVENTS_MAX: u64 = 400_000_000;

pub(crate) struct Engine<'a, P> {
    pub(super) policy: &'a P,
    pub(super) costs: &'a Costs,
    pub(super) groups: &'a [Group],
    pub(super) machine: Machine,
    pub(super) random: Random,
    events: BinaryHeap<Reverse<(u64, u64, SimulatedEvent)>>,
    pub(super) sequence: u64,
    pub(super) stripes: Vec<Stripe>,
    pub(super) flows: Vec<Flow>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) samples: Vec<Samples>,
    pub(super) queued: usize,
    /// The number of workers that are about to search for work.
    pub(super) waking: usize,
    pub(super) report: Report,
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
        engine.create_flows();
        engine
    }

    pub fn run(mut self, span_ns: u64) -> Result<Report, Error> {
        let mut events = 0u64;
        while let Some(Reverse((at_ns, _, event))) = self.events.pop() {
            let until_ns = at_ns.min(span_ns);
            if until_ns > self.machine.now_ns && self.wastes_an_idle_cpu() {
                self.report.idle_while_queued_ns += until_ns - self.machine.now_ns;
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
                SimulatedEvent::Arrive { flow } => self.arrive_from_outside(flow),
                SimulatedEvent::Ready { cpu } => self.ready(cpu),
                SimulatedEvent::Progress { cpu, plan } if self.cpus[cpu.index()].plan == plan => {
                    self.progress(cpu)
                }
                SimulatedEvent::Progress { .. } => {}
                SimulatedEvent::Govern => self.govern(),
                SimulatedEvent::Balance => self.balance(),
                SimulatedEvent::Confine { group, index } => {
                    self.confine(group, self.groups[group].confinements[index].1);
                }
            }
        }
        self.machine.now_ns = span_ns;
        Ok(self.finish(span_ns))
    }

    pub(super) fn plan(&mut self, at_ns: u64, event: SimulatedEvent) {
        self.sequence += 1;
        self.events.push(Reverse((at_ns, self.sequence, event)));
    }

    pub(super) fn plan_in(&mut self, delay_ns: u64, event: SimulatedEvent) {
        self.plan(self.machine.now_ns.saturating_add(delay_ns), event);
    }
}
