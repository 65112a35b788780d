//! A scoped crew of worker threads with one completion queue.
//!
//! One coordinator (the body) submits jobs and takes their results, called events, one by one; jobs
//! never wait for each other. So data flows one way and one thread makes all decisions. Events
//! arrive in any order: only the coordinator has to take care that the result is deterministic.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use refrain_policy::{Class, Entity};

use crate::crew_events::{Events, run};
use crate::error::JobPanicked;
use crate::executor::{Executor, ExternalThreads, current_executor};
use crate::input_lane::InputLane;
use crate::lane::Lane;
use crate::pool::borrowed::{BorrowedJobs, with_borrowed_jobs};
use crate::pool::job::JobBody;
use crate::pool::state::current::current_worker;
use crate::pool::state::domain::Flow;
use crate::pool::worker_pool::{Options, Pool};
use crate::thread::class::KernelClass;
use crate::thread::kernel;
use crate::thread::settings::ThreadSettings;
use crate::thread::start::start;
use crate::wanted::{Wanted, WhileWanted};

/// The coordinator's handle to its workers. See [`crew()`].
///
/// It is not `Sync`: there is one coordinator.
pub struct Crew<'crew, 'env: 'crew, E> {
    events: Arc<Events<E>>,
    input: Arc<InputLane<E>>,
    borrowed: &'crew BorrowedJobs<'env>,
    threads: usize,
    /// The installed pool or threads; `None`: the pool of the process.
    executor: Option<Executor>,
    /// Selected with the first compute job.
    compute: OnceCell<Compute>,
    /// What it uses if nothing is installed.
    default_pool: OnceCell<Arc<Pool>>,
    input_thread: RefCell<InputThread>,
    in_flight: Cell<usize>,
    wanted: Wanted,
}

/// Where the compute jobs of a crew run.
enum Compute {
    /// A flow for each lane; the policy decides between them and all other flows of the pool.
    Flows([Flow; Lane::COMPUTING.len()]),
    ExternalThreads(Arc<dyn ExternalThreads>),
    /// The coordinator runs them itself, in [`Crew::next`].
    Caller(RefCell<[VecDeque<JobBody>; Lane::COMPUTING.len()]>),
}

#[derive(Default)]
enum InputThread {
    #[default]
    NotStarted,
    Running(JoinHandle<()>),
    /// The system refused it; it is not asked again.
    Refused,
}

/// Drops the unstarted jobs when the body ends, also by a panic. Otherwise the crew would wait
/// until they have run.
struct CloseOnDrop<'a, 'crew, 'env, E>(&'a Crew<'crew, 'env, E>);

impl<E> Drop for CloseOnDrop<'_, '_, '_, E> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `body` with a crew of `threads` compute workers, and joins the workers before it returns.
///
/// Jobs may borrow what outlives this call (`'env`). When the body returns or panics, jobs that
/// have not started are dropped, running jobs end, and events that were not taken are dropped. A
/// job ends early, unwinding as by a panic without a message, if it comes to a
/// [`checkpoint`](crate::pool::checkpoint) and holds no [`Lock`](crate::Lock) there. What it shares
/// with others has to be whole then; see [`in_any_case`](crate::in_any_case).
///
/// With `threads` 0 no thread is used: [`Crew::next`] runs the jobs on the calling thread, in a
/// fixed order. The same happens in a job of a pool, and to lanes whose thread the operating system
/// refuses, so a crew works, slowly, without any thread.
///
/// The compute jobs run in the [pool of the process](Pool::of_process), beside those of other
/// crews, or in a pool of the crew's own if it is to have more threads than that. Inside
/// [`install`](crate::install) they run in the installed pool, inside
/// [`install_on`](crate::install_on) on the installed threads.
///
/// The crew has the scheduling class of the calling thread: work begun in the background
/// ([`in_background`](crate::in_background)) stays there.
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
        let events = Arc::new(Events::new(threads));
        let crew = Crew {
            input: Arc::new(InputLane::new(&events)),
            events,
            borrowed,
            threads,
            executor,
            compute: OnceCell::new(),
            default_pool: OnceCell::new(),
            input_thread: RefCell::default(),
            in_flight: Cell::new(0),
            wanted: Wanted::default(),
        };
        let result = {
            let _close = CloseOnDrop(&crew);
            body(&crew)
        };
        // The borrows end when the jobs are dropped. Joining also waits for the last destructors of
        // the thread.
        if let InputThread::Running(thread) = crew.input_thread.take() {
            // It catches the panics of its jobs.
            let _ = thread.join();
        }
        result
    })
}

impl<'env, E: Send + 'env> Crew<'_, 'env, E> {
    /// Queues `job`. The jobs of a lane start in the order of their submission; the policy decides
    /// between the lanes.
    ///
    /// The queue is not bounded: the coordinator limits the number of jobs in flight, by their
    /// memory.
    pub fn submit(&self, lane: Lane, job: impl FnOnce() -> E + Send + 'env) {
        self.in_flight.set(self.in_flight.get() + 1);
        if lane == Lane::Input {
            return self.submit_input(job);
        }
        self.events.count_submitted();
        let job = |wanted: WhileWanted| self.compute_body(lane, move || wanted.run(job));
        match self.compute.get_or_init(|| self.select_compute()) {
            Compute::Flows(flows) => flows[lane as usize].submit_body(job(self.wanted.job())),
            Compute::ExternalThreads(threads) => threads.spawn(job(self.wanted.job())),
            // What this thread does is as wanted as what it runs for.
            Compute::Caller(lanes) => {
                let body = job(WhileWanted::of_this_thread());
                lanes.borrow_mut()[lane as usize].push_back(body);
            }
        }
    }

    fn compute_body(&self, lane: Lane, job: impl FnOnce() -> E + Send + 'env) -> JobBody {
        let events = Arc::clone(&self.events);
        self.borrowed.without_lifetime(Box::new(move || {
            // Threads of another pool have jobs that cannot be taken back.
            if !events.is_closed() {
                events.count_started();
                events.deliver_computed(run(lane, job));
            }
        }))
    }

    /// Queues a job that may be suspended.
    fn submit_input(&self, job: impl FnOnce() -> E + Send + 'env) {
        let events = Arc::clone(&self.events);
        let body = move || events.deliver(Ok(job()));
        self.input
            .push(self.borrowed.without_lifetime(Box::new(body)));
        self.start_input_thread();
    }

    fn start_input_thread(&self) {
        let mut thread = self.input_thread.borrow_mut();
        if self.threads == 0 || !matches!(*thread, InputThread::NotStarted) {
            return;
        }
        let input = Arc::clone(&self.input);
        let serve = move || input.serve();
        let body = self.borrowed.without_lifetime(Box::new(serve));
        let settings = ThreadSettings::from_process(kernel::current_class());
        *thread = match start(&settings, "input", body) {
            Ok(handle) => InputThread::Running(handle),
            Err(_) => InputThread::Refused,
        };
    }
}

/// The class of work that the calling thread begins.
fn current_class() -> Class {
    match kernel::current_class() {
        KernelClass::Normal => Class::Normal,
        KernelClass::Idle => Class::Idle,
    }
}

impl<E> Crew<'_, '_, E> {
    /// Whether jobs of [`Lane::Input`] are suspended while they wait for descriptors
    /// ([`suspend_until_readable`](crate::suspend_until_readable)), so that none delays another.
    /// False without a thread or memory for their stacks. Known once a job was submitted there.
    pub fn suspends_input(&self) -> bool {
        self.has_input_thread() && !self.input.blocks()
    }

    fn has_input_thread(&self) -> bool {
        matches!(*self.input_thread.borrow(), InputThread::Running(_))
    }

    fn select_compute(&self) -> Compute {
        // A job that waited for other workers of its pool could wait forever.
        if self.threads == 0 || current_worker().is_some() {
            return Compute::Caller(RefCell::default());
        }
        let flows = |pool: &Pool, entity: Entity| {
            let entities = Lane::COMPUTING.map(|lane| lane.entity(entity));
            Compute::Flows(pool.parallel_flows(entities, self.threads))
        };
        match &self.executor {
            Some(Executor::Pool { pool, entity, .. }) => flows(pool, *entity),
            Some(Executor::ExternalThreads(threads)) => {
                Compute::ExternalThreads(Arc::clone(threads))
            }
            None => match self.default_pool() {
                Some(pool) => flows(pool, Entity::new(current_class())),
                None => Compute::Caller(RefCell::default()),
            },
        }
    }

    /// The pool of the process, or one of its own if that is too small. `None` if the system
    /// refuses threads.
    fn default_pool(&self) -> Option<&Pool> {
        let of_process = Pool::of_process();
        let pool = match of_process {
            Ok(pool) if pool.workers() >= self.threads => pool,
            _ => Arc::new(Pool::start(Options::with_workers(self.threads)).ok()?),
        };
        Some(self.default_pool.get_or_init(|| pool))
    }

    /// Drops the jobs that have not started; the others end at their next checkpoint.
    fn close(&self) {
        self.events.close();
        self.wanted.end();
        match self.compute.get() {
            Some(Compute::Flows(flows)) => flows.iter().for_each(|flow| _ = flow.cancel()),
            Some(Compute::Caller(lanes)) => drop(lanes.take()),
            Some(Compute::ExternalThreads(_)) | None => {}
        }
        self.input.close();
    }

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
    fn try_next(&self) -> Option<Result<E, JobPanicked>> {
        let mut outcome = self.events.try_take();
        if outcome.is_none() && self.run_here() {
            outcome = self.events.try_take();
        }
        let outcome = outcome?;
        self.in_flight.set(self.in_flight.get() - 1);
        Some(outcome)
    }

    /// The number of submitted jobs whose events have not been taken.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// The number of submitted jobs that have not started.
    pub fn queued(&self) -> usize {
        self.events.unstarted() + self.input.unstarted()
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
        let outcome = self.events.wait(timeout)?;
        self.in_flight.set(self.in_flight.get() - 1);
        Some(outcome)
    }

    /// Runs one job that no thread runs, on the calling thread: reads last, so that the least data
    /// is in flight. Returns whether there was one.
    fn run_here(&self) -> bool {
        let job = match self.compute.get() {
            Some(Compute::Caller(lanes)) => {
                let mut lanes = lanes.borrow_mut();
                lanes.iter_mut().find_map(VecDeque::pop_front)
            }
            _ => None,
        };
        match job {
            Some(job) => {
                job();
                true
            }
            None => !self.has_input_thread() && self.input.run_next_here(),
        }
    }
}

#[cfg(test)]
#[path = "crew_tests.rs"]
mod tests;
