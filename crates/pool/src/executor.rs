//! The threads that run the work of a call: the process's pool, another pool (of this crate or of
//! another), or threads of the kernel's idle class.
//!
//! The caller of an engine function decides, by calling it inside [`install`] and the like. The
//! [`crew`](crate::crew()) of the function uses what is installed when it begins. So one mechanism
//! serves all functions, as `rayon::ThreadPool::install` does, without an option that each of them
//! would have to pass on.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread::scope;

use refrain_policy::{Class, Entity};

use crate::pool::state::current::current_worker;
use crate::pool::state::domain::Flow;
use crate::pool::tenants::Seat;
use crate::pool::worker_pool::Pool;
use crate::thread::settings;
use crate::thread::start::start_idle_scoped;

/// Threads of another pool on which crews can compute ([`install_on`]): rayon's, or an async
/// runtime's threads for blocking work.
pub trait ExternalThreads: Send + Sync {
    /// The number of jobs that run at once.
    fn count(&self) -> usize;

    /// Runs `job` on one of the threads. A job that never runs blocks its crew forever.
    fn spawn(&self, job: Box<dyn FnOnce() + Send>);
}

#[derive(Clone)]
pub(crate) enum Executor {
    Pool {
        pool: Arc<Pool>,
        entity: Entity,
        /// Of a [`PoolShare`](crate::PoolShare): where [`compute`](crate::compute) runs, and for
        /// whom.
        share: Option<(Flow, Arc<Seat>)>,
    },
    ExternalThreads(Arc<dyn ExternalThreads>),
}

impl Executor {
    pub(crate) fn workers(&self) -> usize {
        match self {
            Executor::Pool { pool, .. } => pool.workers(),
            Executor::ExternalThreads(threads) => threads.count(),
        }
    }
}

thread_local! {
    static EXECUTOR: RefCell<Option<Executor>> = const { RefCell::new(None) };
}

/// The executor for a crew that begins on this thread; `None`: the pool of the process.
pub(crate) fn current_executor() -> Option<Executor> {
    EXECUTOR.with_borrow(Clone::clone)
}

struct Restore(Option<Executor>);

impl Drop for Restore {
    fn drop(&mut self) {
        EXECUTOR.set(self.0.take());
    }
}

/// The flow in which the work of this thread computes, if it is another than the thread, and the
/// user for whom.
pub(crate) fn current_share() -> Option<(Flow, Arc<Seat>)> {
    EXECUTOR.with_borrow(|executor| match executor {
        Some(Executor::Pool { share, .. }) => share.clone(),
        _ => None,
    })
}

pub(crate) fn with_executor<R>(executor: Executor, work: impl FnOnce() -> R) -> R {
    let _restore = Restore(EXECUTOR.replace(Some(executor)));
    work()
}

/// Calls `work`. Crews that begin in it compute as flows of `pool` with the properties of `entity`:
/// they share its workers with other flows, by the policy. Called by a job of a pool, it only calls
/// `work`.
///
/// With an entity of the idle class, `work` itself and the crews' threads for reading and writing
/// are of the kernel's idle class too ([`in_background`]).
///
/// ```
/// use std::sync::Arc;
/// use refrain_policy::{Class, Entity};
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
        share: None,
    };
    match entity.class {
        Class::Idle => in_background(|| with_executor(executor, work)),
        Class::Iso | Class::Normal => with_executor(executor, work),
    }
}

/// Calls `work`. Crews that begin in it give their compute jobs to `threads` in the order of their
/// submission. For programs that have a thread pool already. Lanes, deadlines, classes and tenants
/// have no effect there.
///
/// The caller waits for the jobs, so it must not be the only one of those threads.
///
/// ```
/// use std::sync::Arc;
/// use refrain_pool::{Lane, ExternalThreads, crew, install_on};
///
/// struct Fresh;
///
/// impl ExternalThreads for Fresh {
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
pub fn install_on<R>(threads: &Arc<dyn ExternalThreads>, work: impl FnOnce() -> R) -> R {
    with_executor(Executor::ExternalThreads(Arc::clone(threads)), work)
}

/// Calls `work` on a thread of the kernel's idle class (Linux: `SCHED_IDLE`), and waits for it. The
/// threads of crews that begin in `work` are of this class too: they use processors and block
/// devices only when nothing else does. On other systems, and where the system refuses a thread,
/// `work` runs on the calling thread.
///
/// A panic of `work` continues in the caller.
pub fn in_background<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    // Outside the closure, so that `work` is not lost if the system refuses the thread.
    let mut work = Some(work);
    let mut result = None;
    let executor = current_executor();
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
            unreachable!("the thread took the work, and returned its result or its panic")
        }
    }
}

/// Moves the calling thread, and all threads that this crate starts later, to the kernel's idle
/// class for good. For programs that only do background work. Returns whether the kernel agreed.
pub fn enter_background() -> bool {
    settings::enter_background()
}

#[cfg(all(test, not(loom)))]
#[path = "executor_tests.rs"]
mod tests;
