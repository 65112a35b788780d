//! Work arrives: flows wake and are queued, workers are woken.

use refrain_policy::topology::{CpuId, StripeId};
use refrain_policy::{Placement, Policy};

use super::event_loop::Engine;
use super::job::SimulatedJob;
use super::state::{FlowState, SimulatedEvent};
use crate::workload::Arrivals;

impl<P: Policy> Engine<'_, P> {
    pub(super) fn arrive_from_outside(&mut self, flow: usize) {
        self.arrive(flow, None, false);
        if let Arrivals::Every(gap) = self.groups[self.flows[flow].group].arrivals {
            let gap_ns = gap.draw(&mut self.random).max(1);
            self.plan_in(gap_ns, SimulatedEvent::Arrive { flow });
        }
    }

    pub(super) fn arrive(&mut self, flow: usize, waker: Option<CpuId>, is_sync: bool) {
        let work_ns = self.groups[self.flows[flow].group]
            .work
            .draw(&mut self.random)
            .max(1);
        let now_ns = self.machine.now_ns;
        let record = &mut self.flows[flow];
        record.jobs.push_back(SimulatedJob {
            arrived_ns: now_ns,
            left_ns: work_ns,
            done_ns: 0,
            has_started: false,
        });
        if record.state == FlowState::Asleep {
            let placement = self
                .policy
                .wake(&mut record.entity, waker, is_sync, &self.machine);
            self.enqueue(flow, placement);
        }
    }

    pub(super) fn enqueue(&mut self, flow: usize, placement: Placement) {
        let now_ns = self.machine.now_ns;
        let stripe = placement.stripe(&self.machine);
        let record = &mut self.flows[flow];
        if !matches!(record.state, FlowState::Queued { .. }) {
            record.state = FlowState::Queued { since_ns: now_ns };
        }
        let key = self.policy.key(&record.entity, &self.machine);
        self.sequence += 1;
        self.stripes[stripe.index()].push(key, self.sequence, flow, &record.entity);
        self.stripes[stripe.index()].lock(now_ns, self.costs.queue_ns);
        self.queued += 1;
        self.publish(stripe.index());
        match placement {
            Placement::Queue(_) => {}
            Placement::Idle(cpu) => {
                self.machine.set_running(cpu, key);
                self.wake_worker(cpu);
            }
            Placement::Preempt(cpu) => {
                self.machine.set_running(cpu, key);
                self.request_yield(cpu);
            }
        }
    }

    /// The flow on this CPU stops at its next checkpoint.
    pub(super) fn request_yield(&mut self, cpu: CpuId) {
        self.catch_up(cpu);
        self.cpus[cpu.index()].must_yield = true;
        self.plan_progress(cpu);
    }

    fn wake_worker(&mut self, cpu: CpuId) {
        self.machine.idle.remove(cpu);
        let worker = &mut self.cpus[cpu.index()];
        if worker.is_waking || worker.running.is_some() {
            return;
        }
        worker.is_waking = true;
        self.waking += 1;
        let idle_ns = self.machine.now_ns - worker.idle_since_ns;
        let costs = self.costs;
        let latency = match idle_ns {
            spins if spins < worker.spin_ns => &costs.wake_spinning,
            naps if naps < costs.nap_ns => &costs.wake_napping,
            dozes if dozes < costs.doze_ns => &costs.wake_dozing,
            _ => &costs.wake_parked,
        };
        let latency_ns = latency.draw(&mut self.random);
        self.plan_in(latency_ns, SimulatedEvent::Ready { cpu });
    }

    pub(super) fn publish(&mut self, stripe: usize) {
        let summary = self.stripes[stripe].summary(self.policy, &self.machine);
        self.machine.publish(StripeId::new(stripe), summary);
    }
}
