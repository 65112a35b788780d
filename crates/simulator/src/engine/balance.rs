//! Queued flows move to other CPUs: the balancer, and processor sets that change.

use refrain_policy::topology::{CpuId, CpuMask};
use refrain_policy::{Placement, Policy, Rank, View};

use super::event_loop::Engine;
use super::state::{FlowState, SimulatedEvent};

impl<P: Policy> Engine<'_, P> {
    /// Plans the next round after 0.5 to 1.5 intervals, so that rounds do not run in step with the
    /// workload: ULE's rule.
    pub(super) fn plan_balance(&mut self) {
        if let Some(interval_ns) = self.policy.balance_interval_ns() {
            let delay_ns = interval_ns / 2 + self.random.below(interval_ns);
            self.plan_in(delay_ns.max(1), SimulatedEvent::Balance);
        }
    }

    pub(super) fn balance(&mut self) {
        let mut moved = CpuMask::EMPTY;
        while let Some((from, to)) = self.policy.balance(&moved, &self.machine) {
            self.move_one(from, to);
            moved.insert(from);
            moved.insert(to);
        }
        self.plan_balance();
    }

    /// Moves the first flow that waits at `from` and may run on `to`.
    fn move_one(&mut self, from: CpuId, to: CpuId) {
        let stripe = self.machine.stripe_of(from).index();
        let flows = &self.flows;
        let entity = |flow: usize| &flows[flow].entity;
        let stripe_now = &mut self.stripes[stripe];
        let found = stripe_now.pop(self.policy, &self.machine, to, entity, Rank::LAST);
        let Some(flow) = found else { return };
        self.queued -= 1;
        self.publish(stripe);
        let entity = &mut self.flows[flow].entity;
        let placement = self.policy.requeue(entity, to, &self.machine);
        let is_idle = self.machine.idle.contains(to);
        self.enqueue(flow, if is_idle { Placement::Idle(to) } else { placement });
    }

    /// The flows of a group may run on other CPUs from now on. A flow that waits is placed anew;
    /// one that runs elsewhere stops at its next checkpoint.
    pub(super) fn confine(&mut self, group: usize, allowed: CpuMask) {
        for flow in 0..self.flows.len() {
            let record = &mut self.flows[flow];
            if record.group != group {
                continue;
            }
            record.entity.allowed = allowed;
            match record.state {
                FlowState::Asleep => {}
                FlowState::Queued { .. } => self.place_again(flow),
                FlowState::Running => self.leave_forbidden_cpu(flow),
            }
        }
    }

    fn place_again(&mut self, flow: usize) {
        let record = &mut self.flows[flow];
        let entity = &record.entity;
        let found = self
            .stripes
            .iter_mut()
            .position(|stripe| stripe.remove(flow, entity));
        let Some(stripe) = found else { return };
        self.queued -= 1;
        self.publish(stripe);
        let entity = &mut self.flows[flow].entity;
        let placement = self.policy.wake(entity, None, false, &self.machine);
        self.enqueue(flow, placement);
    }

    fn leave_forbidden_cpu(&mut self, flow: usize) {
        let runs_it = |cpu: &CpuId| {
            let running = &self.cpus[cpu.index()].running;
            running.as_ref().is_some_and(|running| running.flow == flow)
        };
        let all = self.machine.topology.all();
        let Some(cpu) = all.iter().find(runs_it) else { return };
        if !self
            .policy
            .may_take(&self.flows[flow].entity, cpu, &self.machine)
        {
            self.request_yield(cpu);
        }
    }
}
