//! How a worker shares the tasks of its flow with idle workers.

use refrain_sync::atomic::Ordering;
use refrain_sync::fence;

use crate::pool::state::context::WorkerContext;
use crate::pool::state::domain::Flow;
use crate::pool::state::requests::HEARTBEAT;
use crate::pool::state::shared_tasks::TaskBody;

impl WorkerContext {
    /// Shares `task` of `flow`, which runs here, and wakes a worker for it if one has nothing to
    /// do.
    pub(crate) fn share(&self, flow: &Flow, task: TaskBody) {
        match flow.shared.tasks.add(task, self.cpu) {
            Some(joiner) => self.domain.nudge(joiner),
            None if self.domain.call_helper(flow) => {}
            // No worker is idle. One that becomes idle requests a heartbeat, which calls again.
            None => self.begin_forking(),
        }
    }

    /// From now on there are tasks for other workers here: while one is idle, the ticker sends
    /// heartbeats to this worker.
    pub(crate) fn begin_forking(&self) {
        self.status.is_forking.store(true, Ordering::Relaxed);
        // One of the two sees the other: this worker the idle one, or the one that becomes idle
        // (`run_loop.rs`) that this worker forks.
        fence(Ordering::SeqCst);
        if self.domain.has_idle_helper() {
            self.domain.start_watching();
        }
    }

    /// A heartbeat: shares the oldest fork of this worker.
    pub(super) fn share_fork(&self) {
        self.status.requests.clear(HEARTBEAT);
        match (self.flow(), self.forks.share_oldest()) {
            (Some(flow), Some(fork)) => self.share(&flow, TaskBody::Fork(fork)),
            // Shared before, when no worker was idle.
            (Some(flow), None) if !flow.shared.tasks.is_empty() => {
                self.domain.call_helper(&flow);
            }
            _ => self.status.is_forking.store(false, Ordering::Relaxed),
        }
    }
}
