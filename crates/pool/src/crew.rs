//! A scoped crew of worker threads with one completion queue.
//!
//! One coordinator (the body) submits jobs and takes their events one by one; jobs never wait for
//! each other. So data flows one way, all decisions are made on one thread, and what the
//! coordinator does with events that arrive in any order is the only thing that needs thought for
//! determinism.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use refrain_policy::{Class, Entity};

use crate::error::JobPanicked;
use crate::executor::{Executor, Hand, executor_here};
use crate::lane::Lane;
use crate::pool::borrowed::{Lender, lending};
use crate::pool::job::Step;
use crate::pool::worker_pool::{Options, Pool};
use crate::queue::{Queue, Station, run};
use crate::thread::kernel;
use crate::thread::settings::ThreadSettings;
use crate::thread::start::start;

/// The coordinator's handle on its workers. See [`crew()`].
///
/// It belongs to one thread (it is not `Sync`): there is one coordinator.
pub struct Crew<'crew, 'env: 'crew, E> {
    queue: Arc<Queue<'env, E>>,
    lender: &'crew Lender<'env>,
    threads: usize,
    /// The pool of others that its hands run on; none: one of its own, made with the first job.
    executor: Option<Executor>,
    own_pool: OnceCell<Option<Pool>>,
    /// The state of its own threads.
    settings: ThreadSettings,
    /// Who does the compute jobs, a flow one job at a turn. Where there are none the coordinator does them in `next`.
    hands: RefCell<Vec<Hand>>,
    /// Threads of the blocking stations; those that the system refused are not asked for again.
    threads_of: [Cell<Staffing>; Station::COUNT],
    in_flight: Cell<usize>,
    handles: RefCell<Vec<JoinHandle<()>>>,
}

/// Who serves a blocking station.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Staffing {
    #[default]
    Nobody,
    Thread,
    /// The system gave none.
    Refused,
}

/// Closes the queue when the body is left, also by a panic; else what was lent would be waited for forever.
struct CloseOnDrop<'queue, 'env, E>(&'queue Queue<'env, E>);

impl<E> Drop for CloseOnDrop<'_, '_, E> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `body` with a crew of `threads` compute workers, and joins them before it returns.
///
/// Jobs may borrow whatever outlives this call (`'env`). When the body returns (or panics), jobs
/// that have not started are dropped, running ones are waited for, and events that nobody took are
/// dropped.
///
/// With `threads` 0 no thread is made at all: [`Crew::next`] runs the jobs on the calling thread,
/// in a fixed order. The same happens to lanes whose thread the operating system refuses, so a
/// crew works, slowly, where no thread is to be had.
///
/// Its own threads have the scheduling class of the calling thread: what is begun in the background
/// ([`in_background`](crate::in_background)) stays there.
///
/// Inside of [`install`](crate::install) the compute workers are flows of the pool installed there, at most one for each of its workers;
/// inside of [`install_on`](crate::install_on) they are the threads given there.
pub fn crew<'env, E, R>(threads: usize, body: impl FnOnce(&Crew<'_, 'env, E>) -> R) -> R
where
    E: Send + 'env,
{
    let executor = executor_here();
    let threads = match &executor {
        Some(executor) => threads.min(executor.workers()),
        None => threads,
    };
    lending(|lender| {
        let crew = Crew {
            queue: Arc::new(Queue::new()),
            lender,
            threads,
            executor,
            own_pool: OnceCell::new(),
            settings: ThreadSettings::of_process(kernel::current_class()),
            hands: RefCell::default(),
            threads_of: Default::default(),
            in_flight: Cell::new(0),
            handles: RefCell::default(),
        };
        let result = {
            let _close = CloseOnDrop(&crew.queue);
            body(&crew)
        };
        // What was lent is gone when the closures are; joining waits for the threads, their last destructors included.
        for handle in crew.handles.take() {
            // A worker catches the panics of its jobs.
            let _ = handle.join();
        }
        result
    })
}

impl<'env, E: Send + 'env> Crew<'_, 'env, E> {
    /// Queues `job`. Inside a lane jobs start in the order they were submitted; among the compute
    /// lanes a worker takes the most urgent job there is.
    ///
    /// The queue is not bounded: the coordinator decides how much is in flight, by memory.
    pub fn submit(&self, lane: Lane, job: impl FnOnce() -> E + Send + 'env) {
        self.in_flight.set(self.in_flight.get() + 1);
        if let Some(hand) = self.queue.push(lane, Box::new(job)) {
            return self.call(hand);
        }
        match Station::of(lane) {
            Station::Compute => self.hire(),
            station => self.staff(station),
        }
    }

    /// It is this hand's turn, until it finds no job.
    fn call(&self, hand: usize) {
        let queue = Arc::clone(&self.queue);
        let job = self.lender.lend(Box::new(move || queue.work(hand)));
        if let Some(hand) = self.hands.borrow().get(hand) {
            hand.submit_steps(job);
        }
    }

    /// One more hand, if there may be one and there is work for it.
    // Hands, and with them threads, come with the work: a crew for a small file never makes those it cannot use.
    fn hire(&self) {
        if self.hands.borrow().len() >= self.threads.min(self.in_flight()) {
            return;
        }
        let hand = match &self.executor {
            Some(executor) => executor.hand(),
            None => match self.own_pool.get_or_init(|| self.start_pool()) {
                Some(pool) => Hand::Flow(pool.flow(Entity::new(Class::Normal))),
                None => return,
            },
        };
        let number = self.queue.hire();
        self.hands.borrow_mut().push(hand);
        self.call(number);
    }

    /// Starts a pool of its own; `None` where the system refuses threads.
    fn start_pool(&self) -> Option<Pool> {
        Pool::start_with(Options::with_workers(self.threads), self.settings.clone()).ok()
    }

    /// Starts the thread of a blocking station.
    fn staff(&self, station: Station) {
        let staffing = &self.threads_of[station as usize];
        if self.threads == 0 || staffing.get() != Staffing::Nobody {
            return;
        }
        let queue = Arc::clone(&self.queue);
        let mut life = self.lender.lend(Box::new(move || {
            queue.serve(station);
            Step::Done
        }));
        let name = format!("{station:?}").to_lowercase();
        let life = move || {
            life();
        };
        match start(&self.settings, &name, life) {
            Ok(handle) => {
                self.handles.borrow_mut().push(handle);
                staffing.set(Staffing::Thread);
            }
            Err(_) => staffing.set(Staffing::Refused),
        }
    }
}

impl<E> Crew<'_, '_, E> {
    /// The event of the next job to complete, in the order of completion; waits for it. `None`
    /// when nothing is in flight, so it always returns once the jobs do.
    pub fn next(&self) -> Option<Result<E, JobPanicked>> {
        self.next_or_give_up(None)
    }

    /// Like [`Crew::next`], but gives up after `patience`: then `None` with [`Crew::in_flight`]
    /// above zero. For coordinators that report progress or look at a cancellation meanwhile.
    pub fn next_within(&self, patience: Duration) -> Option<Result<E, JobPanicked>> {
        self.next_or_give_up(Some(patience))
    }

    /// The event of a job that has already completed; never waits for a worker. `None` when there
    /// is no such event now.
    pub fn try_next(&self) -> Option<Result<E, JobPanicked>> {
        let outcome = self.queue.try_outcome().or_else(|| self.run_unstaffed())?;
        self.in_flight.set(self.in_flight.get() - 1);
        Some(outcome)
    }

    /// Jobs submitted whose events were not yet taken.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Jobs submitted that no worker has started.
    pub fn queued(&self) -> usize {
        self.queue.queued()
    }

    /// Compute workers asked for.
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn next_or_give_up(&self, patience: Option<Duration>) -> Option<Result<E, JobPanicked>> {
        if self.in_flight.get() == 0 {
            return None;
        }
        if let Some(outcome) = self.try_next() {
            return Some(outcome);
        }
        let outcome = self.queue.wait_for_outcome(patience)?;
        self.in_flight.set(self.in_flight.get() - 1);
        Some(outcome)
    }

    /// Runs one job of a station that has no worker, here and now.
    fn run_unstaffed(&self) -> Option<Result<E, JobPanicked>> {
        let unstaffed = |station: &Station| match station {
            Station::Compute => self.hands.borrow().is_empty(),
            _ => self.threads_of[*station as usize].get() != Staffing::Thread,
        };
        let mut stations = Station::DRAIN_ORDER.into_iter().filter(unstaffed);
        let (lane, job) = stations.find_map(|station| self.queue.take(station))?;
        Some(run(lane, job))
    }
}

#[cfg(test)]
#[path = "crew_tests.rs"]
mod tests;
