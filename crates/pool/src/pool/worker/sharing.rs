//! How a worker shares the tasks of its flow with idle workers.

use refrain_sync::atomic::Ordering;
use refrain_sync::fence;

use crate::pool::state::context::WorkerContext;
use crate::pool::state::domain::Flow;
use crate::pool::state::requests::HEARTBEAT;
use crate::pool::state::shared_tasks::TaskBody;

impl WorkerContext {
    /// Shares `task` of `flow`, which runs here, and wakes an idle worker for it.
    pub(crate) fn share(&self, flow: &Flow, task: TaskBody) {
        match flow.shared.tasks.add(task, self.cpu) {
            Some(joiner) => self.domain.nudge(joiner),
            None if self.domain.call_helper(flow) => {}
            // No worker is idle. One that becomes idle requests a heartbeat, which calls again.
            None => self.begin_forking(),
        }
    }

    /// Announces tasks for other workers: while a worker is idle, it sends heartbeats to this one.
    pub(crate) fn begin_forking(&self) {
        self.status.is_forking.store(true, Ordering::Relaxed);
        // Either this worker sees the idle one, or the worker that becomes idle (`run_loop.rs`)
        // sees that this one forks.
        fence(Ordering::SeqCst);
        self.domain.wake_watcher();
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
