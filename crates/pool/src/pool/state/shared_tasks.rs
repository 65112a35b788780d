//! The tasks of a running flow that other workers may take: forks of its joins and jobs of its
//! scopes.

use std::collections::VecDeque;

use refrain_policy::topology::CpuId;
use refrain_sync::ShortLock;
use refrain_sync::atomic::{AtomicU32, Ordering};

use crate::pool::fork::ForkRef;
use crate::pool::job::{JobBody, catch};

pub(crate) enum TaskBody {
    Fork(ForkRef),
    /// A job of a scope. It reports its own end to its scope.
    ScopeJob(JobBody),
}

/// A task, and the worker that waits or will wait for it.
pub(crate) struct SharedTask {
    body: TaskBody,
    pub(crate) owner: CpuId,
}

impl SharedTask {
    /// Runs the task. The caller then wakes the owner (`Domain::nudge`), which may sleep until the
    /// task is done.
    pub(crate) fn run(self) {
        match self.body {
            TaskBody::Fork(fork) => fork.run(),
            // The scope has its job's panic by now; a panic while the job is dropped is ignored.
            TaskBody::ScopeJob(mut body) => drop(catch(move || {
                body();
            })),
        }
    }
}

#[derive(Default)]
struct TaskList {
    tasks: VecDeque<SharedTask>,
    joiners: Vec<CpuId>,
}

/// The shared tasks of one flow. The oldest, which is also the largest, comes first.
#[derive(Default)]
pub(crate) struct SharedTasks {
    list: ShortLock<TaskList>,
    /// The length of the list, for reading without the lock.
    length: AtomicU32,
}

impl SharedTasks {
    /// Adds a task of the worker `owner`. Returns a sleeping joiner of this flow that the caller
    /// has to wake.
    pub(crate) fn add(&self, body: TaskBody, owner: CpuId) -> Option<CpuId> {
        let mut list = self.list.lock();
        list.tasks.push_back(SharedTask { body, owner });
        self.length.fetch_add(1, Ordering::SeqCst);
        list.joiners.pop()
    }

    pub(crate) fn take(&self) -> Option<SharedTask> {
        if self.is_empty() {
            return None;
        }
        let mut list = self.list.lock();
        let task = list.tasks.pop_front()?;
        self.length.fetch_sub(1, Ordering::SeqCst);
        Some(task)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn add_joiner(&self, cpu: CpuId) {
        self.list.lock().joiners.push(cpu);
    }

    pub(crate) fn remove_joiner(&self, cpu: CpuId) {
        self.list.lock().joiners.retain(|&joiner| joiner != cpu);
    }
}
