//! A scoped crew of worker threads with one completion queue.
//!
//! One coordinator (the body) submits jobs and takes their results, called events, one by one; jobs
//! never wait for each other. So data flows one way and one thread makes all decisions. Events
//! arrive in any order: only the coordinator has to take care that the result is deterministic.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use refrain_policy::{Class, Entity};

use crate::crew_queue::{CrewQueue, ThreadGroup, run};
use crate::error::JobPanicked;
use crate::executor::{CrewWorker, Executor, current_executor};
use crate::lane::Lane;
use crate::pool::borrowed::{BorrowedJobs, with_borrowed_jobs};
use crate::pool::job::Step;
use crate::pool::worker_pool::{Options, Pool};
use crate::thread::kernel;
use crate::thread::settings::ThreadSettings;
use crate::thread::start::start;

/// The coordinator's handle to its workers. See [`crew()`].
///
/// It is not `Sync`: there is one coordinator.
pub struct Crew<'crew, 'env: 'crew, E> {
    queue: Arc<CrewQueue<'env, E>>,
    borrowed: &'crew BorrowedJobs<'env>,
    threads: usize,
    /// The installed pool or threads; `None`: the crew starts its own pool with the first job.
    executor: Option<Executor>,
    own_pool: OnceCell<Option<Pool>>,
    settings: ThreadSettings,
    /// The compute workers; a worker that is a flow runs one job in each step. Without workers, the
    /// coordinator runs the jobs in `next`.
    workers: RefCell<Vec<CrewWorker>>,
    /// The threads of the groups that block. If the system refuses one, it is not requested again.
    group_threads: [Cell<GroupThread>; ThreadGroup::COUNT],
    in_flight: Cell<usize>,
    handles: RefCell<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum GroupThread {
    #[default]
    NotStarted,
    Running,
    /// The system refused it.
    Refused,
}

/// Closes the queue when the body ends, also by a panic. Otherwise the crew would wait forever for
/// jobs that borrow.
struct CloseOnDrop<'queue, 'env, E>(&'queue CrewQueue<'env, E>);

impl<E> Drop for CloseOnDrop<'_, '_, E> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `body` with a crew of `threads` compute workers, and joins the workers before it returns.
///
/// Jobs may borrow what outlives this call (`'env`). When the body returns or panics, jobs that
/// have not started are dropped, running jobs are finished, and events that were not taken are
/// dropped.
///
/// With `threads` 0 no thread is started: [`Crew::next`] runs the jobs on the calling thread, in a
/// fixed order. The same happens to lanes whose thread the operating system refuses, so a crew
/// works, slowly, without any thread.
///
/// Its own threads have the scheduling class of the calling thread: work begun in the background
/// ([`in_background`](crate::in_background)) stays there.
///
/// Inside [`install`](crate::install) the compute workers are flows of the installed pool, at most
/// one per pool worker. Inside [`install_on`](crate::install_on) they are the installed threads.
pub fn crew<'env, E, R>(threads: usize, body: impl FnOnce(&Crew<'_, 'env, E>) -> R) -> R
where
    E: Send + 'env,
{
    let executor = current_executor();
    let threads = match &executor {
        Some(executor) => threads.min(executor.workers()),
        None => threads,
    };
    with_borrowed_jobs(|borrowed| {
        let crew = Crew {
            queue: Arc::new(CrewQueue::new()),
            borrowed,
            threads,
            executor,
            own_pool: OnceCell::new(),
            settings: ThreadSettings::of_process(kernel::current_class()),
            workers: RefCell::default(),
            group_threads: Default::default(),
            in_flight: Cell::new(0),
            handles: RefCell::default(),
        };
        let result = {
            let _close = CloseOnDrop(&crew.queue);
            body(&crew)
        };
        // The borrows end when the jobs are dropped. Joining also waits for the last destructors of
        // the threads.
        for handle in crew.handles.take() {
            // The threads catch the panics of their jobs.
            let _ = handle.join();
        }
        result
    })
}

impl<'env, E: Send + 'env> Crew<'_, 'env, E> {
    /// Queues `job`. The jobs of a lane start in the order of their submission. Among the compute
    /// lanes, a worker takes the job of the most urgent lane.
    ///
    /// The queue is not bounded: the coordinator limits the number of jobs in flight, by their
    /// memory.
    pub fn submit(&self, lane: Lane, job: impl FnOnce() -> E + Send + 'env) {
        self.in_flight.set(self.in_flight.get() + 1);
        if lane == Lane::Input {
            return self.submit_input(job);
        }
        if let Some(worker) = self.queue.push(lane, Box::new(job)) {
            return self.run_worker(worker);
        }
        match ThreadGroup::of(lane) {
            ThreadGroup::Compute => self.add_worker(),
            group => self.start_group_thread(group),
        }
    }

    /// Queues a job that may be suspended. Its coroutine knows no lifetimes, so the job delivers
    /// its event itself.
    fn submit_input(&self, job: impl FnOnce() -> E + Send + 'env) {
        let queue = Arc::clone(&self.queue);
        let mut job = Some(job);
        let body = self.borrowed.without_lifetime(Box::new(move || {
            if let Some(job) = job.take() {
                queue.deliver(ThreadGroup::Input, Ok(job()));
            }
            Step::Done
        }));
        self.queue.push_input(body);
        self.start_group_thread(ThreadGroup::Input);
    }

    /// Whether jobs of [`Lane::Input`] are suspended while they wait for descriptors
    /// ([`suspend_until_readable`](crate::suspend_until_readable)), so that none delays another.
    /// False without a thread or memory for their stacks. Known once a job was submitted there.
    pub fn suspends_input(&self) -> bool {
        self.group_threads[ThreadGroup::Input as usize].get() == GroupThread::Running
            && !self.queue.input_blocks()
    }

    /// Lets this worker run jobs until it finds none.
    fn run_worker(&self, worker: usize) {
        let queue = Arc::clone(&self.queue);
        let job = self
            .borrowed
            .without_lifetime(Box::new(move || queue.run_step(worker)));
        if let Some(worker) = self.workers.borrow().get(worker) {
            worker.submit_steps(job);
        }
    }

    /// Adds a worker, if the limit allows it and there is work for it.
    // Workers, and with them threads, are added with the work: a crew for a small file never makes
    // threads that it cannot use.
    fn add_worker(&self) {
        if self.workers.borrow().len() >= self.threads.min(self.in_flight()) {
            return;
        }
        let worker = match &self.executor {
            Some(executor) => executor.new_worker(),
            None => match self.own_pool.get_or_init(|| self.start_pool()) {
                Some(pool) => CrewWorker::Flow(pool.flow(Entity::new(Class::Normal))),
                None => return,
            },
        };
        let number = self.queue.add_worker();
        self.workers.borrow_mut().push(worker);
        self.run_worker(number);
    }

    /// Starts its own pool; `None` if the system refuses threads.
    fn start_pool(&self) -> Option<Pool> {
        Pool::start_with(Options::with_workers(self.threads), self.settings.clone()).ok()
    }

    fn start_group_thread(&self, group: ThreadGroup) {
        let thread = &self.group_threads[group as usize];
        if self.threads == 0 || thread.get() != GroupThread::NotStarted {
            return;
        }
        let queue = Arc::clone(&self.queue);
        let mut serve = self.borrowed.without_lifetime(Box::new(move || {
            match group {
                ThreadGroup::Input => queue.serve_input(),
                group => queue.serve(group),
            }
            Step::Done
        }));
        let name = format!("{group:?}").to_lowercase();
        let body = move || {
            serve();
        };
        match start(&self.settings, &name, body) {
            Ok(handle) => {
                self.handles.borrow_mut().push(handle);
                thread.set(GroupThread::Running);
            }
            Err(_) => thread.set(GroupThread::Refused),
        }
    }
}

impl<E> Crew<'_, '_, E> {
    /// Waits for the next job to complete and returns its event, in the order of completion.
    /// Returns `None` when nothing is in flight, so it does not wait forever.
    pub fn next(&self) -> Option<Result<E, JobPanicked>> {
        self.next_or_timeout(None)
    }

    /// Like [`Crew::next`], but waits at most `timeout`: then it returns `None` while
    /// [`Crew::in_flight`] is above zero. For coordinators that report progress or check a
    /// cancellation.
    pub fn next_within(&self, timeout: Duration) -> Option<Result<E, JobPanicked>> {
        self.next_or_timeout(Some(timeout))
    }

    /// Returns the event of a completed job, if there is one; never waits for a worker.
    pub fn try_next(&self) -> Option<Result<E, JobPanicked>> {
        let outcome = self
            .queue
            .try_outcome()
            .or_else(|| self.run_without_worker())?;
        self.in_flight.set(self.in_flight.get() - 1);
        Some(outcome)
    }

    /// The number of submitted jobs whose events have not been taken.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// The number of submitted jobs that have not started.
    pub fn queued(&self) -> usize {
        self.queue.queued()
    }

    /// The largest number of compute workers.
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn next_or_timeout(&self, timeout: Option<Duration>) -> Option<Result<E, JobPanicked>> {
        if self.in_flight.get() == 0 {
            return None;
        }
        if let Some(outcome) = self.try_next() {
            return Some(outcome);
        }
        let outcome = self.queue.wait_for_outcome(timeout)?;
        self.in_flight.set(self.in_flight.get() - 1);
        Some(outcome)
    }

    /// Runs one job of a group that has no worker, on the calling thread.
    fn run_without_worker(&self) -> Option<Result<E, JobPanicked>> {
        let without_worker = |group: &ThreadGroup| match group {
            ThreadGroup::Compute => self.workers.borrow().is_empty(),
            _ => self.group_threads[*group as usize].get() != GroupThread::Running,
        };
        let mut groups = ThreadGroup::DRAIN_ORDER.into_iter().filter(without_worker);
        groups.find_map(|group| match group {
            ThreadGroup::Input => {
                self.queue.run_input(self.queue.take_input()?);
                self.queue.try_outcome()
            }
            group => self.queue.take(group).map(|(lane, job)| run(lane, job)),
        })
    }
}

#[cfg(test)]
#[path = "crew_tests.rs"]
mod tests;
