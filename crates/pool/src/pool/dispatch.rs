//! From a wake-up to a worker: queues flows in stripes, wakes workers, and takes entries out.

use crate::trace;
use refrain_trace::EventKind;
use std::sync::Arc;

use refrain_policy::topology::{CpuId, CpuMask};
use refrain_policy::{Class, Key, Placement, Policy, Rank, View as _};
use refrain_sync::atomic::Ordering;
use refrain_sync::fence;

use super::state::context::WorkerContext;
use super::state::domain::{Domain, Flow};
use super::state::requests::PREEMPT;
use super::state::view::View;

/// A job of so many slices is long: others of the same urgency do not wait for its end.
const SLICES_OF_LONG_JOB: u32 = 2;
/// Up to which depth they run on top of long jobs. The rest of the depth is for more urgent flows.
const DEPTH_OF_LONG_JOBS_MAX: u32 = 4;

/// What a worker runs, when it looks for what may run on top.
pub(crate) struct Running<'a> {
    flow: &'a Flow,
    key: Key,
    is_long: bool,
}

impl Domain {
    pub(crate) fn is_preceded(&self, running: Key) -> bool {
        let best = self.stripes.iter().map(|stripe| stripe.best_key());
        let mut waiting = best.filter(|key| key.is_some()).peekable();
        if waiting.peek().is_none() {
            return false;
        }
        let view = self.view();
        let limit = self.policy.rank(running, &view);
        waiting.any(|key| self.policy.rank(key, &view) < limit)
    }

    /// Whether a flow of a higher class than `running` is queued.
    pub(crate) fn has_higher_class(&self, running: Key) -> bool {
        let mut best = self.stripes.iter().map(|stripe| stripe.best_key());
        best.any(|key| key.is_some() && key.class() < running.class())
    }

    /// Takes the next flow for a worker. If it runs one, only a flow that may run on top of it.
    pub(crate) fn take(
        &self,
        cpu: CpuId,
        running: Option<&Running<'_>>,
        view: &View<'_>,
    ) -> Option<Flow> {
        let mut tried = CpuMask::EMPTY;
        let rank = |key| self.policy.rank(key, view);
        let limit = running.map_or(Rank::LAST, |running| rank(running.key));
        let may_run_on_top = |flow: &Flow| {
            running.is_none_or(|running| flow.may_run_on_top(running.flow, running.is_long))
        };
        while let Some(stripe) = self.policy.pick(cpu, &tried, view) {
            let queue = self.stripes.get(stripe.index())?;
            let found = queue.take(rank, limit, |flow| {
                flow.is_allowed(&self.policy, view, cpu)
                    && may_run_on_top(flow)
                    && flow.try_begin_turn(running.map(|running| running.flow))
            });
            if found.is_some() {
                self.trace_length();
                return found;
            }
            // There are never more stripes than CPUs, so a mask of CPUs can contain them.
            let number = CpuId::new(stripe.index());
            if tried.contains(number) {
                return None;
            }
            tried.insert(number);
        }
        None
    }

    /// The second half of a wake-up: into the stripe, then to a worker.
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        key: Key,
        flow: Flow,
        place: Placement,
        allowed: &CpuMask,
        view: &View<'_>,
    ) {
        let stripe = place.stripe(view).index().min(self.stripes.len() - 1);
        let number = flow.number();
        if let Err(flow) = self.stripes[stripe].push(key, flow) {
            return flow.abandon();
        }
        self.trace_length();
        fence(Ordering::SeqCst);
        match place {
            Placement::Idle(cpu) if self.idle.claim(cpu) => return self.wake(cpu, number),
            Placement::Preempt(cpu) => {
                self.preempt(cpu);
                // Not for normal flows: the second worker would look for nothing most of the time,
                // which costs a compression 5 % of its processor time.
                if key.class() == Some(Class::Iso)
                    && let Some(second) = self.second_to_preempt(cpu, key, allowed, view)
                {
                    self.preempt(second);
                }
            }
            Placement::Idle(_) | Placement::Queue(_) => {}
        }
        // The policy's view may be old: a worker may be idle by now. See `idle_set.rs`.
        if let Some(cpu) = self.idle.claim_any(allowed) {
            self.wake(cpu, number);
        }
    }

    fn preempt(&self, cpu: CpuId) {
        if let Some(worker) = self.workers.get(cpu.index()) {
            worker.requests.set(PREEMPT);
            self.nudge(cpu);
        }
    }

    /// The next worker that runs something later than `key`: whichever of two is first at a
    /// checkpoint takes the flow.
    fn second_to_preempt(
        &self,
        first: CpuId,
        key: Key,
        allowed: &CpuMask,
        view: &View<'_>,
    ) -> Option<CpuId> {
        let rank = self.policy.rank(key, view);
        let count = self.workers.len();
        let others = (1..count).map(|step| CpuId::new((first.index() + step) % count));
        others
            .filter(|cpu| allowed.contains(*cpu))
            .find(|&cpu| self.policy.rank(view.running(cpu), view) > rank)
    }

    #[inline(always)]
    fn trace_length(&self) {
        trace::count("flows queued", || {
            let stripes = self.stripes.iter();
            stripes.map(|stripe| stripe.length() as u64).sum()
        });
    }

    /// Wakes another worker if more is queued: after a worker has left the idle set with work, and
    /// after a limit that held entries back has room again.
    pub(crate) fn pass_on(self: &Arc<Self>) {
        fence(Ordering::SeqCst);
        if self.has_waiting()
            && let Some(cpu) = self.idle.claim_any(&CpuMask::ALL)
        {
            self.wake(cpu, 0);
        }
    }

    /// Has a worker look at its timers: wakes it if it sleeps, starts its thread if it has none. If
    /// it is busy, it looks by itself, and the watcher knows when that is late.
    pub(crate) fn remind(self: &Arc<Self>, cpu: CpuId, deadline_ns: u64) {
        let Some(worker) = self.workers.get(cpu.index()) else {
            return;
        };
        if worker.thread() == 0 && self.idle.claim(cpu) {
            return self.wake(cpu, 0);
        }
        fence(Ordering::SeqCst);
        if worker.sleeper.is_woken() {
            self.have_watched(deadline_ns);
        } else {
            worker.sleeper.wake();
        }
    }

    /// Wakes a worker if it sleeps, without giving it work.
    pub(crate) fn nudge(&self, cpu: CpuId) {
        fence(Ordering::SeqCst);
        if let Some(worker) = self.workers.get(cpu.index())
            && !worker.sleeper.is_woken()
        {
            worker.sleeper.wake();
        }
    }

    /// Wakes a worker that the caller has claimed; starts its thread if it has none yet.
    pub(crate) fn wake(self: &Arc<Self>, cpu: CpuId, flow: u32) {
        trace::instant(EventKind::Wake, flow, || cpu.index() as u64);
        let mut claimed = Some(cpu);
        while let Some(cpu) = claimed {
            let Some(worker) = self.workers.get(cpu.index()) else {
                break;
            };
            if worker.thread() != 0 {
                worker.sleeper.wake();
                break;
            }
            if self.start_worker(cpu) {
                break;
            }
            // The system refuses a thread: take another worker, if there is one.
            claimed = self.idle.claim_any(&CpuMask::ALL);
        }
    }
}

impl WorkerContext {
    /// Takes the next flow, which precedes the running one if there is one.
    pub(crate) fn take_next(&self) -> Option<Flow> {
        let view = self.domain.view_at(self.last_ns());
        let frame = self.frame.borrow();
        let running = frame.flow.as_ref().map(|flow| Running {
            flow,
            key: frame.key,
            is_long: frame.slices_of_job >= SLICES_OF_LONG_JOB
                && self.depth.get() < DEPTH_OF_LONG_JOBS_MAX,
        });
        self.domain.take(self.cpu, running.as_ref(), &view)
    }
}
