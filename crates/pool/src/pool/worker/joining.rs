//! How a worker waits for tasks that it has shared.

use refrain_policy::SpinLimits;
use refrain_sync::atomic::Ordering;
use refrain_sync::fence;

use crate::held_locks::locks_held;
use crate::pool::state::context::WorkerContext;
use crate::pool::state::domain::Flow;
use crate::pool::state::requests::{HEARTBEAT, PREEMPT};

/// How often a joiner checks whether it can continue before it sleeps: a few microseconds, about as
/// long as a sleep and a wake-up take.
const JOIN_SPINS: u32 = 1000;

fn spin_until(is_ready: impl Fn() -> bool) -> bool {
    (0..JOIN_SPINS).any(|_| {
        std::hint::spin_loop();
        is_ready()
    })
}

impl WorkerContext {
    /// Waits until `is_done`. While waiting, runs the shared tasks of the flow, and nothing else
    /// except more urgent flows.
    pub(crate) fn wait_for(&self, flow: &Flow, is_done: impl Fn() -> bool) {
        let domain = &self.domain;
        let (tasks, sleeper) = (&flow.shared.tasks, &self.status.sleeper);
        let must_look = || is_done() || !tasks.is_empty() || self.has_request_for_joiner();
        while !is_done() {
            if let Some(task) = tasks.take() {
                let owner = task.owner;
                task.run();
                self.domain.nudge(owner);
            } else if self.has_request_for_joiner() {
                self.handle_requests();
            } else if !spin_until(must_look) {
                // As in `idle_set.rs`, with the flow's list of joiners instead of the idle set.
                sleeper.prepare_to_sleep();
                tasks.add_joiner(self.cpu);
                fence(Ordering::SeqCst);
                if !must_look() {
                    let until_ns = self.next_heartbeat_ns().min(self.own_timer_ns());
                    // It has spun already.
                    sleeper.sleep(SpinLimits::default(), until_ns, || domain.now_ns());
                }
                tasks.remove_joiner(self.cpu);
                sleeper.cancel_sleep();
                self.fire_own_timers(self.read_clock());
                self.beat();
            }
        }
    }

    pub(super) fn has_request_for_joiner(&self) -> bool {
        self.status.requests.bits() & (PREEMPT | HEARTBEAT) != 0 && locks_held() == 0
    }
}
