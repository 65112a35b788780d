//! Creates the flows at the start, and the report at the end.

use std::collections::VecDeque;

use refrain_policy::Policy;

use super::event_loop::Engine;
use super::machine::Stripe;
use super::state::{Flow, FlowState, SimulatedEvent};
use crate::report::{GroupReport, Report, Times};
use crate::workload::Arrivals;

impl<P: Policy> Engine<'_, P> {
    pub(super) fn create_flows(&mut self) {
        for (index, group) in self.groups.iter().enumerate() {
            let first = self.flows.len();
            for (number, (at_ns, _)) in group.confinements.iter().enumerate() {
                let (group, index) = (index, number);
                self.plan(*at_ns, SimulatedEvent::Confine { group, index });
            }
            for member in 0..group.count {
                let mut entity = group.entity;
                self.policy.admit(&mut entity, None, &self.machine);
                self.flows.push(Flow {
                    entity,
                    group: index,
                    next: first + (member + 1) % group.count,
                    jobs: VecDeque::new(),
                    state: FlowState::Asleep,
                    ran_on: None,
                    cpu_ns: 0,
                    work_ns: 0,
                });
                let begin_ns = match group.arrivals {
                    Arrivals::Always => Some(0),
                    Arrivals::Ring(tokens) => (member < tokens).then_some(0),
                    Arrivals::After(think) => Some(think.draw(&mut self.random)),
                    Arrivals::Every(gap) => Some(gap.draw_residual(&mut self.random)),
                };
                if let Some(begin_ns) = begin_ns {
                    self.plan(
                        begin_ns,
                        SimulatedEvent::Arrive {
                            flow: first + member,
                        },
                    );
                }
            }
        }
        self.plan_balance();
        if let Some(governor) = self.costs.governor {
            for cpu in self.machine.topology.all().iter() {
                self.machine.set_frequency(cpu, governor.speed_permille(0));
            }
            self.plan(governor.sample_ns, SimulatedEvent::Govern);
        }
    }

    /// Whether a queued flow could run on an idle CPU, and no worker is on its way to it.
    pub(super) fn wastes_an_idle_cpu(&self) -> bool {
        if self.queued <= self.waking || self.machine.idle.is_empty() {
            return false;
        }
        let may_run = |flow: usize| {
            let entity = &self.flows[flow].entity;
            let idle = self.machine.idle;
            idle.iter()
                .any(|cpu| self.policy.may_take(entity, cpu, &self.machine))
        };
        self.stripes
            .iter()
            .flat_map(Stripe::flows)
            .filter(|&flow| may_run(flow))
            .count()
            > self.waking
    }

    pub(super) fn finish(mut self, span_ns: u64) -> Report {
        self.machine
            .topology
            .all()
            .iter()
            .for_each(|cpu| self.catch_up(cpu));
        for record in &self.flows {
            if let FlowState::Queued { since_ns } = record.state {
                let longest = &mut self.samples[record.group].longest_queued_ns;
                *longest = (*longest).max(span_ns - since_ns);
            }
        }
        let mut report = self.report;
        (report.span_ns, report.cpus) = (span_ns, self.cpus.len());
        for (index, (group, samples)) in self.groups.iter().zip(self.samples).enumerate() {
            let members = || self.flows.iter().filter(move |flow| flow.group == index);
            report.groups.push(GroupReport {
                name: group.name.clone(),
                flows: group.count,
                cpu_ns: members().map(|flow| flow.cpu_ns).sum(),
                cpu_by_flow_ns: members().map(|flow| flow.cpu_ns).collect(),
                work_ns: members().map(|flow| flow.work_ns).sum(),
                jobs: samples.jobs,
                waited: Times::new(samples.waited_ns),
                responded: Times::new(samples.responded_ns),
                longest_queued_ns: samples.longest_queued_ns,
            });
        }
        report
    }
}
