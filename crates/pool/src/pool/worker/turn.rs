//! One turn of a flow on a worker: from the policy's grant to the charge of the time that it ran.

use std::sync::Arc;

use crate::trace;
use refrain_policy::topology::CpuMask;
use refrain_policy::{Charge, Key, Placement, Policy, Stop, View as _};
use refrain_sync::ShortGuard;
use refrain_trace::TurnEnd;

use crate::pool::job::{JobBody, catch};
use crate::pool::state::context::WorkerContext;
use crate::pool::state::domain::{Flow, FlowState};
use crate::pool::state::requests::PREEMPT;
use crate::pool::state::view::View;

enum AfterJob {
    Next(JobBody),
    /// The turn has ended.
    Ended(Stop),
}

/// A worker charges this much time at once. Otherwise a job of 20 ns would spend as much again on
/// the accounts, which all workers write. An account that is wrong by this much for each worker
/// does not change shares measurably (a slice is a hundred times as long).
const CHARGED_AT_ONCE_NS: u64 = 10_000;
/// The processor time of turns that take at least this long is read from the kernel: while other
/// programs or threads had the processor, the flow did not use it. The reading takes 0.2 µs, and a
/// shorter turn is rarely interrupted.
const LONG_TURN_NS: u64 = 20_000;

impl WorkerContext {
    /// Runs `flow`, and then publishes the flow below it again.
    pub(super) fn run(&self, flow: Flow) {
        // A separate case, because setting nothing aside costs as much as setting a flow aside.
        if self.is_between_flows() {
            self.run_flow(flow);
            self.slice_end_ns.set(u64::MAX);
            return self.status.publish(Key::NONE);
        }
        let used_ns = self.count_processor_time();
        let mut below = self.frame.take();
        below.used_ns = below.used_ns.saturating_add(used_ns);
        let counted = below.flow.as_ref();
        let counted = counted.map(|flow| Arc::clone(&flow.shared.group));
        let counted = self.counted.replace(counted);
        self.run_flow(flow);
        self.counted.replace(counted);
        self.status.publish(below.key);
        self.slice_end_ns.set(below.slice_end_ns);
        self.frame.replace(below);
    }

    fn begin(&self, flow: Flow, key: Key, slice_ns: u64) {
        let now_ns = self.last_ns();
        let slice_end_ns = now_ns.saturating_add(slice_ns);
        self.status.publish(key);
        self.slice_end_ns.set(slice_end_ns);
        let mut frame = self.frame.borrow_mut();
        frame.flow = Some(flow);
        frame.key = key;
        frame.slice_end_ns = slice_end_ns;
        frame.started_ns = now_ns;
        frame.nested_ns = 0;
        frame.used_ns = 0;
        frame.slices_of_job = 0;
        frame.has_renewed_slice = false;
    }

    /// The processor time of a turn that took `own_ns`, at most that.
    fn used_ns(&self, own_ns: u64, counted_ns: u64) -> u64 {
        if own_ns < LONG_TURN_NS {
            return own_ns;
        }
        own_ns.min(counted_ns.saturating_add(self.count_processor_time()))
    }

    fn run_flow(&self, flow: Flow) {
        let domain = &self.domain;
        let view = domain.view_at(self.last_ns());
        let mut state = flow.shared.state.lock();
        state.is_queued = false;
        state.turns += 1;
        let grant = domain.policy.run(&mut state.entity, self.cpu, &view);
        let key = domain.policy.key(&state.entity, &view);
        let first = state.mailbox.pop_front();
        if flow.shared.group.limit().is_some() && !state.mailbox.is_empty() {
            let place = Placement::Queue(view.stripe_of(self.cpu));
            let (key, allowed) = self.mark_queued(state, &view);
            domain.enqueue(key, flow.clone(), place, &allowed, &view);
        } else {
            drop(state);
        }
        domain.ledger.dispatched(&grant);
        self.begin(flow, key, grant.slice_ns);
        self.run_jobs(first);
    }

    /// Ends a slice in the middle of a job: the flow pays for it as if it stopped here, and goes on
    /// with a new slice and a later deadline.
    pub(super) fn renew_slice(&self, now_ns: u64) {
        let mut frame = self.frame.borrow_mut();
        let Some(flow) = frame.flow.clone() else {
            return;
        };
        let domain = &self.domain;
        let view = domain.view_at(now_ns);
        let mut state = flow.shared.state.lock();
        let ran_ns = self.used_ns(frame.own_ns(now_ns), frame.used_ns);
        let entity = &mut state.entity;
        let policy = &domain.policy;
        self.charge(&policy.stop(entity, self.cpu, ran_ns, Stop::Expired, &view));
        self.charge_all();
        let grant = policy.run(entity, self.cpu, &view);
        frame.key = policy.key(entity, &view);
        drop(state);
        domain.ledger.dispatched(&grant);
        frame.slice_end_ns = now_ns.saturating_add(grant.slice_ns);
        frame.started_ns = now_ns;
        frame.nested_ns = 0;
        frame.used_ns = 0;
        frame.slices_of_job = frame.slices_of_job.saturating_add(1);
        frame.has_renewed_slice = true;
        self.status.publish(frame.key);
        self.slice_end_ns.set(frame.slice_end_ns);
    }

    /// Runs the jobs of the flow until it has none, its slice is over or it is preempted.
    fn run_jobs(&self, first: Option<JobBody>) {
        let traced = trace::begin().map(|start_ns| (start_ns, self.flow_number()));
        let mut next = first;
        let stop = loop {
            if let Some(body) = next.take() {
                self.run_body(body);
            }
            match self.after_job() {
                AfterJob::Next(body) => next = Some(body),
                AfterJob::Ended(stop) => break stop,
            }
        };
        if let Some((start_ns, flow)) = traced {
            trace::turn(flow, start_ns, self.turn_end(stop));
        }
    }

    fn flow_number(&self) -> u32 {
        let frame = self.frame.borrow();
        frame.flow.as_ref().map_or(0, Flow::number)
    }

    /// The reason for a turn's end, for the timeline.
    fn turn_end(&self, stop: Stop) -> TurnEnd {
        match stop {
            Stop::Blocked => TurnEnd::NoJobs,
            Stop::Expired => TurnEnd::SliceOver,
            Stop::Preempted => TurnEnd::Preempted,
            Stop::Yielded => TurnEnd::Yielded,
        }
    }

    fn run_body(&self, body: JobBody) {
        // The drop of what the job captured also runs foreign code, and belongs to the call.
        // Whoever waits for a result has been told of a panic by its handle.
        let _ = catch(body);
    }

    /// Between two jobs of a flow: returns the next one, or ends the turn.
    fn after_job(&self) -> AfterJob {
        let domain = &self.domain;
        let view = domain.view_at(self.read_clock());
        self.fire_own_timers(view.now_ns);
        self.fire_late_timers(view.now_ns);
        let Some(flow) = self.frame.borrow_mut().flow.take() else {
            return AfterJob::Ended(Stop::Blocked);
        };
        let mut state = flow.shared.state.lock();
        let Some(reason) = self.reason_to_stop(&state) else {
            let next = state.mailbox.pop_front();
            drop(state);
            let mut frame = self.frame.borrow_mut();
            frame.flow = Some(flow);
            frame.slices_of_job = 0;
            drop(frame);
            return next.map_or(AfterJob::Ended(Stop::Blocked), AfterJob::Next);
        };
        self.end_inheritance();
        let (own_ns, counted_ns) = {
            let frame = self.frame.borrow();
            (frame.own_ns(view.now_ns), frame.used_ns)
        };
        let used_ns = self.used_ns(own_ns, counted_ns);
        // Only the last of its workers puts a parallel flow to sleep.
        let why = if state.turns > 1 { Stop::Yielded } else { reason };
        let charge = domain
            .policy
            .stop(&mut state.entity, self.cpu, used_ns, why, &view);
        self.charge(&charge);
        state.turns -= 1;
        let has_limited = self.end_counted_turn(&flow);
        if reason == Stop::Blocked || state.is_queued {
            drop(state);
        } else {
            let place = domain.policy.requeue(&mut state.entity, self.cpu, &view);
            let (key, allowed) = self.mark_queued(state, &view);
            domain.enqueue(key, flow, place, &allowed, &view);
        }
        if has_limited {
            // The entries that the limit held back may run now, on any idle worker.
            domain.pass_on();
        }
        AfterJob::Ended(reason)
    }

    /// The flow is about to be queued again: returns its key and the workers that may take it.
    fn mark_queued(&self, mut state: ShortGuard<'_, FlowState>, view: &View<'_>) -> (Key, CpuMask) {
        state.is_queued = true;
        let key = self.domain.policy.key(&state.entity, view);
        (key, state.entity.allowed)
    }

    /// Ends a turn that a limit counted. Returns whether the limit was reached until now.
    fn end_counted_turn(&self, flow: &Flow) -> bool {
        let group = &flow.shared.group;
        let Some(limit) = group.limit() else {
            return false;
        };
        let counted = self.counted.borrow();
        let is_counted_below = counted
            .as_ref()
            .is_some_and(|counted| Arc::ptr_eq(counted, group));
        !is_counted_below && limit.end()
    }

    /// Charges the time of a turn, together with earlier turns that were not charged yet.
    fn charge(&self, charge: &Charge) {
        let mut uncharged = self.uncharged.borrow_mut();
        // In place, field by field: moved as a whole, the charge would be read as a vector just
        // after it was written in bytes, and the read would stall (8 ns).
        let is_joined = uncharged.as_mut().is_some_and(|sum| sum.join(charge));
        if is_joined
            && uncharged
                .as_ref()
                .is_some_and(|sum| sum.ran_ns < CHARGED_AT_ONCE_NS)
        {
            return;
        }
        if let Some(sum) = uncharged.take() {
            self.domain.ledger.ran(&sum);
        }
        if !is_joined {
            *uncharged = Some(*charge);
        }
    }

    pub(super) fn charge_all(&self) {
        if let Some(sum) = self.uncharged.take() {
            self.domain.ledger.ran(&sum);
        }
    }

    fn reason_to_stop(&self, state: &FlowState) -> Option<Stop> {
        let now_ns = self.last_ns();
        if state.mailbox.is_empty() {
            return Some(Stop::Blocked);
        }
        if self.domain.is_closing() {
            return Some(Stop::Yielded);
        }
        let frame = self.frame.borrow();
        if now_ns >= frame.slice_end_ns {
            return Some(Stop::Expired);
        }
        let requests = &self.status.requests;
        let is_asked = requests.bits() & PREEMPT != 0;
        if is_asked {
            requests.clear(PREEMPT);
        }
        // Nobody asks
        // - for those who wait with earlier deadlines since a slice ended in the middle of a job;
        // - for a flow that was queued while this turn began. If it is of the same class, it can
        //   wait until the slice ends.
        let domain = &self.domain;
        let may_be_preceded =
            is_asked || frame.has_renewed_slice || domain.has_higher_class(frame.key);
        if may_be_preceded && domain.is_preceded(frame.key) {
            return Some(Stop::Preempted);
        }
        None
    }
}
