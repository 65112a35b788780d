//! Flows make progress on CPUs and are stopped.

use refrain_policy::topology::{CAPACITY_MAX, CpuId, CpuMask};
use refrain_policy::{Policy, Stop, View};

use super::event_loop::Engine;
use super::state::{FlowState, SimulatedEvent};
use crate::costs::PERMILLE;
use crate::workload::Arrivals;

impl<P: Policy> Engine<'_, P> {
    /// The current speed of a CPU, in thousandths of the fastest CPU alone on its core.
    fn speed_permille(&self, cpu: CpuId) -> u64 {
        let topology = &self.machine.topology;
        let is_busy = |other: &CpuId| *other != cpu && self.cpus[other.index()].running.is_some();
        let has_busy_sibling = topology.core_of(cpu).iter().any(|other| is_busy(&other));
        let full = u64::from(PERMILLE);
        let shared = if has_busy_sibling { u64::from(self.costs.sibling_permille) } else { full };
        let scaled = u64::from(self.machine.frequency_permille(cpu));
        let capacity = topology
            .cpus()
            .get(cpu.index())
            .map_or(0, |cpu| u64::from(cpu.capacity));
        (shared * scaled * capacity / full / u64::from(CAPACITY_MAX)).max(1)
    }

    /// Accounts for the time and work of the CPU's flow since the last update.
    pub(super) fn catch_up(&mut self, cpu: CpuId) {
        let speed = self.speed_permille(cpu);
        let worker = &mut self.cpus[cpu.index()];
        let Some(running) = &mut worker.running else {
            return;
        };
        let record = &mut self.flows[running.flow];
        let (ran_ns, work_ns) = running.advance(self.machine.now_ns, speed);
        record.cpu_ns += ran_ns;
        worker.busy_in_sample_ns += ran_ns;
        if let Some(job) = record.jobs.front_mut() {
            let work_ns = work_ns.min(job.left_ns);
            job.left_ns -= work_ns;
            job.done_ns += work_ns;
            record.work_ns += work_ns;
        }
    }

    fn siblings(&self, cpu: CpuId) -> CpuMask {
        self.machine.topology.core_of(cpu)
    }

    pub(super) fn catch_up_siblings(&mut self, cpu: CpuId) {
        self.siblings(cpu)
            .iter()
            .for_each(|sibling| self.catch_up(sibling));
    }

    pub(super) fn plan_siblings(&mut self, cpu: CpuId) {
        self.siblings(cpu)
            .iter()
            .for_each(|sibling| self.plan_progress(sibling));
    }

    /// Plans the next point at which the CPU's flow ends its job or can be stopped.
    pub(super) fn plan_progress(&mut self, cpu: CpuId) {
        let speed = self.speed_permille(cpu);
        let worker = &mut self.cpus[cpu.index()];
        worker.plan += 1;
        let plan = worker.plan;
        let Some(running) = &worker.running else {
            return;
        };
        let record = &self.flows[running.flow];
        let Some(job) = record.jobs.front() else {
            return;
        };
        let at_ns = running.next_point_ns(
            job,
            &self.groups[record.group],
            worker.must_yield,
            speed,
            self.machine.now_ns,
        );
        self.plan(at_ns, SimulatedEvent::Progress { cpu, plan });
    }

    pub(super) fn progress(&mut self, cpu: CpuId) {
        self.catch_up(cpu);
        let worker = &self.cpus[cpu.index()];
        let Some(running) = &worker.running else {
            return;
        };
        let (flow, has_ended, must_yield) =
            (running.flow, running.is_slice_over(), worker.must_yield);
        let record = &self.flows[flow];
        let Some(job) = record.jobs.front() else {
            return;
        };
        let is_done = job.left_ns == 0;
        let group = &self.groups[record.group];
        let can_stop = is_done || running.is_at_checkpoint(job, group.checkpoint_ns);
        let can_expire = is_done || (can_stop && !group.is_whole);
        if is_done {
            self.complete(cpu, flow);
            if self.flows[flow].jobs.is_empty() {
                self.stop(cpu, flow, Stop::Blocked);
                return;
            }
        }
        if can_stop && must_yield {
            self.report.preemptions += 1;
            if group.is_whole && !is_done {
                self.run_others_on_top(cpu);
            } else {
                self.stop(cpu, flow, Stop::Preempted);
            }
        } else if can_expire && has_ended {
            self.stop(cpu, flow, Stop::Expired);
        } else {
            self.begin_job(flow, self.machine.now_ns);
            self.plan_progress(cpu);
        }
    }

    fn complete(&mut self, cpu: CpuId, flow: usize) {
        let record = &mut self.flows[flow];
        let Some(job) = record.jobs.pop_front() else {
            return;
        };
        let samples = &mut self.samples[record.group];
        samples.jobs += 1;
        samples
            .responded_ns
            .push(self.machine.now_ns - job.arrived_ns);
        let (next, arrivals) = (record.next, self.groups[record.group].arrivals);
        match arrivals {
            Arrivals::Every(_) => {}
            Arrivals::Always => self.arrive(flow, None, false),
            Arrivals::After(think) => {
                let think_ns = think.draw(&mut self.random);
                self.plan_in(think_ns, SimulatedEvent::Arrive { flow });
            }
            Arrivals::Ring(_) => {
                let is_sync = self.flows[flow].jobs.is_empty();
                self.arrive(next, Some(cpu), is_sync);
            }
        }
    }

    fn stop(&mut self, cpu: CpuId, flow: usize, why: Stop) {
        self.catch_up_siblings(cpu);
        let Some(running) = self.cpus[cpu.index()].running.take() else {
            return;
        };
        let record = &mut self.flows[flow];
        let charge = self.policy.stop(
            &mut record.entity,
            cpu,
            running.ran_ns(),
            why,
            &self.machine,
        );
        self.machine.ledger().ran(&charge);
        record.state = FlowState::Asleep;
        if why != Stop::Blocked {
            let placement = self.policy.requeue(&mut record.entity, cpu, &self.machine);
            self.enqueue(flow, placement);
        }
        self.find_work(cpu, Some(flow));
        self.plan_siblings(cpu);
    }

    pub(super) fn govern(&mut self) {
        let Some(governor) = self.costs.governor else {
            return;
        };
        let all = self.machine.topology.all();
        all.iter().for_each(|cpu| self.catch_up(cpu));
        for cpu in all.iter() {
            // Hardware threads share the frequency of their core.
            let busy_ns = |sibling: CpuId| self.cpus[sibling.index()].busy_in_sample_ns;
            let busiest_ns = self.siblings(cpu).iter().map(busy_ns).max().unwrap_or(0);
            self.machine
                .set_frequency(cpu, governor.speed_permille(busiest_ns));
        }
        for cpu in all.iter() {
            self.cpus[cpu.index()].busy_in_sample_ns = 0;
            self.plan_progress(cpu);
        }
        self.plan_in(governor.sample_ns.max(1), SimulatedEvent::Govern);
    }
}
