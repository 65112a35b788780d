//! What a running flow lets others do for it: forks of its joins, jobs of its scopes.

use std::collections::VecDeque;

use refrain_policy::topology::CpuId;
use refrain_timer::sync::ShortLock;
use refrain_timer::sync::atomic::{AtomicU32, Ordering};

use super::domain::Domain;
use super::fork::ForkRef;
use super::job::{Body, catch};

/// Something to run once.
pub(crate) enum Task {
    Fork(ForkRef),
    /// A job of a scope. It tells its scope itself how it ended.
    Job(Body),
}

/// A task, and the worker that waits for it or will.
pub(crate) struct Share {
    task: Task,
    owner: CpuId,
}

impl Share {
    /// Runs the task, and wakes its owner should it sleep over it.
    pub(crate) fn run(self, domain: &Domain) {
        let owner = self.owner;
        self.run_alone();
        domain.nudge(owner);
    }

    /// Runs the task.
    pub(crate) fn run_alone(self) {
        match self.task {
            Task::Fork(fork) => fork.run(),
            // The panic of a scope's job is in its scope by now; a panic of its drop concerns nobody.
            Task::Job(mut body) => drop(catch(move || {
                body();
            })),
        }
    }
}

#[derive(Default)]
struct List {
    tasks: VecDeque<Share>,
    /// Joiners of this flow that sleep.
    waiting: Vec<CpuId>,
}

/// The shares of one flow: oldest, and so largest, first.
#[derive(Default)]
pub(crate) struct Shares {
    list: ShortLock<List>,
    /// As many as in the list, to be read without the lock.
    length: AtomicU32,
}

impl Shares {
    /// Adds a task of the worker `owner`; names a joiner of this flow that sleeps, to be nudged.
    pub(crate) fn add(&self, task: Task, owner: CpuId) -> Option<CpuId> {
        let mut list = self.list.lock();
        list.tasks.push_back(Share { task, owner });
        self.length.fetch_add(1, Ordering::SeqCst);
        list.waiting.pop()
    }

    /// Takes the oldest.
    pub(crate) fn take(&self) -> Option<Share> {
        if self.is_empty() {
            return None;
        }
        let mut list = self.list.lock();
        let share = list.tasks.pop_front()?;
        self.length.fetch_sub(1, Ordering::SeqCst);
        Some(share)
    }

    /// Whether there is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::SeqCst) == 0
    }

    /// A joiner is about to sleep until there is something.
    pub(crate) fn wait_here(&self, cpu: CpuId) {
        self.list.lock().waiting.push(cpu);
    }

    /// It does not sleep any more.
    pub(crate) fn wait_no_more(&self, cpu: CpuId) {
        self.list.lock().waiting.retain(|&waiting| waiting != cpu);
    }
}
