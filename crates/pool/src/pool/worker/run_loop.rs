//! The thread of a worker.

use crate::trace;
use refrain_trace::EventKind;
use std::sync::Arc;

use refrain_policy::SpinLimits;
use refrain_policy::topology::CpuId;
use refrain_sync::atomic::Ordering;

use crate::idle::WakeReason;

use crate::pool::state::context::WorkerContext;
use crate::pool::state::current;
use crate::pool::state::domain::Domain;
use crate::pool::state::requests::PREEMPT;
use crate::thread::kernel;

pub(crate) fn run(domain: Arc<Domain>, cpu: CpuId) {
    let status = Arc::clone(&domain.workers[cpu.index()]);
    let thread = kernel::this_thread();
    kernel::set_exact_wakeups();
    status.sleeper.bind_to_current_thread();
    // 0 means "no thread"; where threads have no numbers any other number will do.
    status
        .kernel_thread
        .store(thread.unsigned_abs().max(1), Ordering::Release);
    WorkerContext::new(domain, cpu).run_until_closed();
}

impl WorkerContext {
    fn run_until_closed(&self) {
        current::run_as(self, || {
            self.read_clock();
            while !self.domain.is_closing() {
                if self.has_request() {
                    self.status.requests.clear(PREEMPT);
                }
                if let Some(flow) = self.take_next() {
                    self.hand_on_watch();
                    self.run(flow);
                } else {
                    self.idle();
                }
            }
        });
    }

    /// Waits for work; `../state/idle_set.rs` explains the steps.
    fn idle(&self) {
        let (domain, sleeper) = (&self.domain, &self.status.sleeper);
        self.charge_all();
        self.begin_idling();
        sleeper.prepare_to_sleep();
        domain.idle.insert(self.cpu);
        let view = domain.view_at(self.last_ns());
        let found = domain.take(self.cpu, None, &view);
        if found.is_none() && !domain.is_closing() {
            let limits = self.spin_limits();
            let traced_from_ns = trace::begin();
            let reason = sleeper.sleep(limits, self.sleep_until(), || domain.now_ns());
            if let Some(start_ns) = traced_from_ns {
                let is_parked = reason == WakeReason::Parked;
                trace::span(EventKind::Idle, "", start_ns, is_parked.into());
            }
            if reason != WakeReason::TimedOut {
                self.spin_policy.borrow_mut().record_wake(self.read_clock());
            }
        }
        domain.idle.claim(self.cpu);
        sleeper.cancel_sleep();
        self.look_around(self.read_clock());
        if let Some(flow) = found {
            domain.pass_on();
            self.hand_on_watch();
            self.run(flow);
        }
    }

    /// How long to stay awake: by how often the worker was woken lately, and not at all where
    /// another thread could use the processor.
    fn spin_limits(&self) -> SpinLimits {
        let (now_ns, spin_ns_max) = (self.last_ns(), self.domain.spin_ns);
        if spin_ns_max == 0 {
            return SpinLimits::default();
        }
        let has_processor = !self.domain.machine.is_overcommitted(now_ns);
        let limits = self.spin_policy.borrow_mut().limits(now_ns, has_processor);
        SpinLimits {
            spin_ns: limits.spin_ns.min(spin_ns_max),
            light_ns: limits.light_ns.min(spin_ns_max),
        }
    }
}
