//! CPUs find work or become idle.

use refrain_policy::topology::{CpuId, CpuMask};
use refrain_policy::{Key, Policy, Rank, View};

use super::event_loop::Engine;
use super::running::Running;
use super::state::FlowState;

/// The largest number of jobs below the running one, as in the pool.
const NESTING_MAX: usize = 8;

impl<P: Policy> Engine<'_, P> {
    pub(super) fn ready(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()].is_waking = false;
        self.waking -= 1;
        self.cpus[cpu.index()]
            .spin_policy
            .record_wake(self.machine.now_ns);
        if self.cpus[cpu.index()].running.is_none() {
            self.find_work(cpu, None);
        }
    }

    /// A free CPU takes the flow that the policy chooses, or becomes idle. `before` is the flow
    /// that ran there last.
    pub(super) fn find_work(&mut self, cpu: CpuId, before: Option<usize>) {
        let mut tried = CpuMask::EMPTY;
        let mut waited_ns = 0;
        while let Some(stripe) = self.policy.pick(cpu, &tried, &self.machine) {
            waited_ns +=
                self.stripes[stripe.index()].lock(self.machine.now_ns, self.costs.queue_ns);
            let flows = &self.flows;
            let entity = |flow: usize| &flows[flow].entity;
            let below = self.cpus[cpu.index()].below.last();
            let limit = below.map_or(Rank::LAST, |below| {
                let key = self.policy.key(entity(below.flow), &self.machine);
                self.policy.rank(key, &self.machine)
            });
            let stripe_now = &mut self.stripes[stripe.index()];
            let found = stripe_now.pop(self.policy, &self.machine, cpu, entity, limit);
            if let Some(flow) = found {
                self.queued -= 1;
                self.publish(stripe.index());
                self.dispatch(cpu, flow, waited_ns, before);
                return;
            }
            tried.insert(CpuId::new(stripe.index()));
        }
        if self.resume_below(cpu, before) {
            return;
        }
        self.machine.idle.insert(cpu);
        self.machine.set_running(cpu, Key::NONE);
        let worker = &mut self.cpus[cpu.index()];
        worker.idle_since_ns = self.machine.now_ns;
        let limits = worker.spin_policy.limits(self.machine.now_ns, true);
        worker.spin_ns = limits.spin_ns.min(self.costs.spin_ns);
        worker.must_yield = false;
    }

    /// Lets more urgent flows run on top of a job that cannot leave its CPU.
    pub(super) fn run_others_on_top(&mut self, cpu: CpuId) {
        self.catch_up_siblings(cpu);
        let worker = &mut self.cpus[cpu.index()];
        worker.must_yield = false;
        if worker.below.len() < NESTING_MAX
            && let Some(running) = worker.running.take()
        {
            let flow = running.flow;
            worker.below.push(running);
            self.find_work(cpu, Some(flow));
        }
        self.plan_siblings(cpu);
    }

    /// Resumes the job below, if there is one. `before` is the flow that ran there last, or the
    /// job's own flow if none did.
    fn resume_below(&mut self, cpu: CpuId, before: Option<usize>) -> bool {
        let worker = &mut self.cpus[cpu.index()];
        let Some(mut running) = worker.below.pop() else {
            return false;
        };
        worker.must_yield = false;
        let flow = running.flow;
        if before != Some(flow) {
            let switch_ns = self.costs.switch.draw(&mut self.random);
            self.report.switches += 1;
            self.report.overhead_ns += switch_ns;
            running.resume_at(self.machine.now_ns + switch_ns);
        }
        self.cpus[cpu.index()].running = Some(running);
        let key = self.policy.key(&self.flows[flow].entity, &self.machine);
        self.machine.set_running(cpu, key);
        self.plan_siblings(cpu);
        true
    }

    fn dispatch(&mut self, cpu: CpuId, flow: usize, waited_ns: u64, before: Option<usize>) {
        let now_ns = self.machine.now_ns;
        let record = &mut self.flows[flow];
        let group = &self.groups[record.group];
        if let FlowState::Queued { since_ns } = record.state {
            let longest = &mut self.samples[record.group].longest_queued_ns;
            *longest = (*longest).max(now_ns - since_ns);
        }
        record.state = FlowState::Running;
        let grant = self.policy.run(&mut record.entity, cpu, &self.machine);
        self.machine.ledger().dispatched(&grant);
        let mut overhead_ns = waited_ns;
        if before != Some(flow) {
            overhead_ns += self.costs.switch.draw(&mut self.random);
            self.report.switches += 1;
            if let Some(from) = record.ran_on {
                let level = self.machine.topology.locality(from, cpu) as usize;
                self.report.moves[level] += 1;
                let reload_ns =
                    self.costs.reload_ns_per_kib[level].saturating_mul(group.working_set_kib);
                overhead_ns += self.costs.move_ns[level].saturating_add(reload_ns);
            }
        }
        record.ran_on = Some(cpu);
        self.report.overhead_ns += overhead_ns;
        let key = self.policy.key(&record.entity, &self.machine);
        self.machine.set_running(cpu, key);
        self.catch_up_siblings(cpu);
        self.cpus[cpu.index()].must_yield = false;
        self.cpus[cpu.index()].running =
            Some(Running::new(flow, now_ns + overhead_ns, grant.slice_ns));
        self.begin_job(flow, now_ns + overhead_ns);
        self.plan_siblings(cpu);
    }

    /// Records the start of the flow's first job, unless it has already started.
    pub(super) fn begin_job(&mut self, flow: usize, at_ns: u64) {
        let record = &mut self.flows[flow];
        if let Some(job) = record.jobs.front_mut().filter(|job| !job.has_started) {
            job.has_started = true;
            self.samples[record.group]
                .waited_ns
                .push(at_ns - job.arrived_ns);
        }
    }
}
