//! Where the work of a call is done: on threads of its own, on a pool that others use too (ours or another), or behind everything else on the
//! machine.
//!
//! Whoever starts a verb of the engine decides, and the verb need not know: its [`crew`](crate::crew()) asks when it begins. So there is one
//! way in for all verbs, as with `rayon::ThreadPool::install`, and no option that each of them would have to pass on.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread::scope;

use refrain_policy::{Class, Entity};

use crate::pool::job::{JobBody, Step};
use crate::pool::state::current::current_worker;
use crate::pool::state::domain::Flow;
use crate::pool::worker_pool::Pool;
use crate::thread::settings;
use crate::thread::start::start_idle_scoped;

/// Threads of another kind that crews can do their computing on ([`install_on`]): rayon's, or an async runtime's for blocking work.
pub trait Threads: Send + Sync {
    /// How many jobs run at once.
    fn count(&self) -> usize;

    /// Runs `job` on one of the threads. It must run, or its crew waits for it forever, and takes as long as the crew has something to do.
    fn spawn(&self, job: Box<dyn FnOnce() + Send>);
}

/// What crews of this thread run on.
#[derive(Clone)]
pub(crate) enum Executor {
    Pool { pool: Arc<Pool>, entity: Entity },
    Threads(Arc<dyn Threads>),
}

/// One of those who do a crew's compute jobs.
pub(crate) enum Hand {
    Flow(Flow),
    Threads(Arc<dyn Threads>),
}

impl Executor {
    /// How many hands can work at once.
    pub(crate) fn workers(&self) -> usize {
        match self {
            Executor::Pool { pool, .. } => pool.workers(),
            Executor::Threads(threads) => threads.count(),
        }
    }

    pub(crate) fn hand(&self) -> Hand {
        match self {
            Executor::Pool { pool, entity } => Hand::Flow(pool.flow(*entity)),
            Executor::Threads(threads) => Hand::Threads(Arc::clone(threads)),
        }
    }
}

impl Hand {
    /// Calls `steps` until it says that it is done. Between two calls a flow may be given to others.
    pub(crate) fn submit_steps(&self, mut steps: JobBody) {
        match self {
            Hand::Flow(flow) => flow.submit_steps(steps),
            Hand::Threads(threads) => {
                threads.spawn(Box::new(move || while let Step::Again = steps() {}));
            }
        }
    }
}

thread_local! {
    static EXECUTOR: RefCell<Option<Executor>> = const { RefCell::new(None) };
}

/// What a crew that begins here runs on; none: on a pool of its own.
///
/// A job of a pool gets none: its crew would wait for hands that may need the very worker it waits on.
pub(crate) fn executor_here() -> Option<Executor> {
    match current_worker() {
        Some(_) => None,
        None => EXECUTOR.with_borrow(Clone::clone),
    }
}

/// Brings back what was there before, also when unwinding.
struct Restore(Option<Executor>);

impl Drop for Restore {
    fn drop(&mut self) {
        EXECUTOR.set(self.0.take());
    }
}

fn with_executor<R>(executor: Executor, work: impl FnOnce() -> R) -> R {
    let _restore = Restore(EXECUTOR.replace(Some(executor)));
    work()
}

/// Calls `work`; crews that begin in it do their computing as flows of `pool`, such as `entity` describes: they share its workers with
/// others, by the policy. Called by a job of a pool it changes nothing.
///
/// With an entity of the idle class, `work` itself and the crews' threads for reading and writing are of the kernel's idle class too
/// ([`in_background`]).
///
/// ```
/// use std::sync::Arc;
/// use refrain_pool::policy::{Class, Entity};
/// use refrain_pool::pool::{Options, Pool, current_worker};
/// use refrain_pool::{Lane, crew, install};
///
/// let pool = Arc::new(Pool::start(Options::with_workers(2))?);
/// let worker = install(&pool, Entity::new(Class::Normal), || {
///     crew(2, |crew| {
///         crew.submit(Lane::Normal, current_worker);
///         crew.next()
///     })
/// });
/// assert!(matches!(worker, Some(Ok(Some(_)))), "one of the pool's two");
/// # Ok::<(), refrain_pool::Error>(())
/// ```
pub fn install<R: Send>(pool: &Arc<Pool>, entity: Entity, work: impl FnOnce() -> R + Send) -> R {
    if current_worker().is_some() {
        return work();
    }
    let executor = Executor::Pool {
        pool: Arc::clone(pool),
        entity,
    };
    match entity.class {
        Class::Idle => in_background(|| with_executor(executor, work)),
        Class::Iso | Class::Normal => with_executor(executor, work),
    }
}

/// Calls `work`; crews that begin in it do their computing on `threads`, at most as many jobs at once as these do. For programs that have
/// a thread pool already; without urgency, classes or tenants.
///
/// The caller waits for what is computed, so it must not be the only one of those threads.
///
/// ```
/// use std::sync::Arc;
/// use refrain_pool::{Lane, Threads, crew, install_on};
///
/// struct Fresh;
///
/// impl Threads for Fresh {
///     fn count(&self) -> usize {
///         2
///     }
///     fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
///         std::thread::spawn(job);
///     }
/// }
///
/// let sum = install_on(&(Arc::new(Fresh) as _), || {
///     crew(2, |crew| {
///         (1..=3).for_each(|number| crew.submit(Lane::Normal, move || number));
///         std::iter::from_fn(|| crew.next()).flatten().sum::<i32>()
///     })
/// });
/// assert_eq!(sum, 6);
/// ```
pub fn install_on<R>(threads: &Arc<dyn Threads>, work: impl FnOnce() -> R) -> R {
    with_executor(Executor::Threads(Arc::clone(threads)), work)
}

/// Calls `work` on a thread of the kernel's idle class (Linux: `SCHED_IDLE`), and waits for it. Threads that `work` makes are of this class
/// too: all of it only uses processors, and the kernel's block devices, when nothing else wants them. On other systems, and where no
/// thread is to be had, it is called as usual.
///
/// A panic of `work` goes on in the caller.
pub fn in_background<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    // Outside of the closure, so that `work` is not lost where no thread is to be had.
    let mut work = Some(work);
    let mut result = None;
    let executor = executor_here();
    let has_run = scope(|scope| {
        let (work, result) = (&mut work, &mut result);
        let life = move || {
            EXECUTOR.set(executor);
            *result = work.take().map(|work| work());
        };
        let thread = start_idle_scoped(scope, "background", life);
        thread.map(|thread| thread.join())
    });
    if let Ok(Err(panic)) = has_run {
        std::panic::resume_unwind(panic);
    }
    match (result, work) {
        (Some(result), _) => result,
        (None, Some(work)) => work(),
        (None, None) => {
            unreachable!("work was taken by the thread, which gave its result or its panic")
        }
    }
}

/// Puts the calling thread, and all that it will make, into the kernel's idle class for good; whether the kernel has one. What
/// [`in_background`] does, for programs that do nothing else.
pub fn enter_background() -> bool {
    settings::enter_background()
}

#[cfg(all(test, not(loom)))]
#[path = "executor_tests.rs"]
mod tests;
