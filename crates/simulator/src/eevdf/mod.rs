//! Earliest eligible virtual deadline first, as in Stoica and Abdel-Wahab (1995), for comparison.
//!
//! Each CPU has a queue with a virtual time, which advances by the time served divided by the
//! weight of its flows. A flow requests one slice after another; `eligible time + slice / weight`
//! is the deadline of a request. Of the flows that have had no more than their share, the one with
//! the earliest deadline runs.
//!
//! What the paper leaves open: a flow that wakes may preempt, if it is eligible and has the earlier
//! deadline. Credit is lost in sleep, debt is not. Shorter slices (sensitive latency classes) give
//! earlier deadlines at the same share. The classes do not matter, except that idle flows have the
//! weight 3. CPUs are searched, and flows moved between them, as by ULE.

mod queue;
#[cfg(test)]
mod tests;
mod weight;

use std::cell::{RefCell, RefMut};

use refrain_policy::topology::{CpuId, CpuMask, Sharing, StripeId};
use refrain_policy::{
    Charge, Class, Entity, Grant, Key, Ledger, Placement, Policy, Rank, Stop, TenantId, Ule, View,
};

use queue::Queue;
use weight::{scaled_ns, virtual_start_ns};

/// The policy of one run: unlike others it has state, the virtual times.
#[derive(Debug)]
pub(crate) struct Eevdf {
    slice_ns: u64,
    /// Searches CPUs, steals and balances.
    balancer: Ule,
    queues: RefCell<Vec<Queue>>,
}

impl Eevdf {
    /// A policy for a machine with `cpus` CPUs. `slice_ns` is the usual request.
    pub fn new(slice_ns: u64, cpus: usize) -> Eevdf {
        Eevdf {
            slice_ns,
            balancer: Ule::default(),
            queues: RefCell::new(vec![Queue::default(); cpus]),
        }
    }

    fn queues(&self) -> RefMut<'_, Vec<Queue>> {
        self.queues.borrow_mut()
    }

    fn virtual_time_ns(&self, cpu: CpuId, view: &impl View) -> i64 {
        self.queues()[cpu.index()].virtual_time_ns(view.now_ns())
    }

    /// The next request of a flow, eligible at this virtual time.
    fn begin_request(&self, entity: &mut Entity, start_ns: i64) {
        entity.slice_left_ns = entity.latency.scale(self.slice_ns).max(1) as i64;
        let end_ns = start_ns.saturating_add(scaled_ns(entity, entity.slice_left_ns));
        entity.deadline_ns = end_ns.max(0) as u64;
    }

    /// The flow joins the queue of a CPU. Its distance from the virtual time goes with it.
    fn join(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) {
        let mut queues = self.queues();
        let from = &mut queues[entity.last_cpu.index()];
        from.leave(entity, view.now_ns());
        let from_ns = from.virtual_time_ns(view.now_ns());
        let to = &mut queues[cpu.index()];
        let shift_ns = to.virtual_time_ns(view.now_ns()) - from_ns;
        entity.deadline_ns = entity.deadline_ns.saturating_add_signed(shift_ns);
        entity.last_cpu = cpu;
        to.join(entity);
    }

    fn place(&self, entity: &mut Entity, place: Placement, view: &impl View) -> Placement {
        let cpu = CpuId::new(place.stripe(view).index());
        self.join(entity, cpu, view);
        let (own, running) = (self.key(entity, view), view.running(cpu));
        let precedes = running.is_some() && own < running;
        match place {
            Placement::Idle(_) => place,
            _ if precedes && self.is_eligible(entity, view) => Placement::Preempt(cpu),
            _ => Placement::Queue(view.stripe_of(cpu)),
        }
    }

    /// Whether a flow has had no more than its share of its queue.
    fn is_eligible(&self, entity: &Entity, view: &impl View) -> bool {
        virtual_start_ns(entity) <= self.virtual_time_ns(entity.last_cpu, view)
    }
}

impl Policy for Eevdf {
    fn ledger(&self, cpus: usize) -> Ledger {
        self.balancer.ledger(cpus)
    }

    fn sharing(&self) -> Sharing {
        Sharing::Cpu
    }

    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, _view: &impl View) {
        entity.is_admitted = true;
        entity.last_cpu = parent.map_or(CpuId::FIRST, |parent| parent.last_cpu);
        self.begin_request(entity, 0);
    }

    fn key(&self, entity: &Entity, _view: &impl View) -> Key {
        let key = Key::new(Class::Normal, TenantId::default(), entity.deadline_ns);
        key.min(entity.inherited)
    }

    fn rank(&self, key: Key, _view: &impl View) -> Rank {
        Rank::from_key(key)
    }

    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Placement {
        let mut searching = *entity;
        let place = self.balancer.wake(&mut searching, waker, is_sync, view);
        // It may also have been in a queue that it must leave.
        if !entity.is_counted {
            let now_ns = self.virtual_time_ns(entity.last_cpu, view);
            self.begin_request(entity, virtual_start_ns(entity).max(now_ns));
        }
        self.place(entity, place, view)
    }

    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Placement {
        let mut searching = *entity;
        let place = self.balancer.requeue(&mut searching, cpu, view);
        self.place(entity, place, view)
    }

    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        self.balancer.pick(cpu, tried, view)
    }

    fn balance_interval_ns(&self) -> Option<u64> {
        self.balancer.balance_interval_ns()
    }

    fn balance(&self, moved: &CpuMask, view: &impl View) -> Option<(CpuId, CpuId)> {
        self.balancer.balance(moved, view)
    }

    /// Another CPU may take flows that are not eligible: there they have no competitors.
    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        self.balancer.may_take(entity, cpu, view)
            && (entity.last_cpu != cpu || self.is_eligible(entity, view))
    }

    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant {
        if entity.last_cpu != cpu {
            self.join(entity, cpu, view);
        }
        self.queues()[cpu.index()].begin_run(view.now_ns());
        Grant::plain(entity, entity.slice_left_ns.max(1) as u64)
    }

    fn stop(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge {
        let queue = &mut self.queues()[cpu.index()];
        queue.leave(entity, view.now_ns());
        queue.end_run(ran_ns);
        entity.slice_left_ns = entity.slice_left_ns.saturating_sub_unsigned(ran_ns);
        if entity.slice_left_ns <= 0 {
            self.begin_request(entity, virtual_start_ns(entity));
        }
        // The balancer prefers CPUs with a warm cache.
        entity.history.asleep_since_ns =
            if why == Stop::Blocked { view.now_ns().max(1) } else { 0 };
        Charge::plain(entity, ran_ns, view.now_ns())
    }
}
