//! The process around the engine: forks, and which thread receives signals.
//!
//! A child process has only the thread that forked. It gets a pool of its own, unless a verb was
//! running at that moment: then the state of the engine there is unknown, and every call fails.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;
use refrain_policy::{Class, Entity};
use refrain_pool::pool::{Options, Pool};
use refrain_pool::{Lock, install, processors};

use crate::error::usage;

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// How many verbs run.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// How many forks lead from the process that loaded the module to this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Whether a verb was running when this process was forked.
static IS_UNUSABLE: AtomicBool = AtomicBool::new(false);

/// The pool of a forked process, and the number of forks that lead to it.
static CHILD_POOL: Lock<Option<(usize, Arc<Pool>)>> = Lock::new(None);

/// Remembers the main thread, if this is it.
#[pyfunction]
pub fn set_main_thread() {
    MAIN_THREAD.get_or_init(|| thread::current().id());
}

/// Called in a forked process.
#[pyfunction]
pub fn after_fork_in_child() {
    if RUNNING.swap(0, Ordering::Relaxed) > 0 {
        IS_UNUSABLE.store(true, Ordering::Relaxed);
    }
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Whether signal handlers run in this thread.
pub fn is_main_thread() -> bool {
    MAIN_THREAD.get() == Some(&thread::current().id())
}

/// How many forks lead to this process: what was opened in another one is of no use.
pub fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

struct Running;

impl Running {
    fn begin() -> Running {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A child begins at zero, even inside a verb.
        let _ = RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            count.checked_sub(1)
        });
    }
}

fn child_pool(forks: usize) -> PyResult<Arc<Pool>> {
    let mut pool = CHILD_POOL.lock();
    if let Some((of, pool)) = &*pool
        && *of == forks
    {
        return Ok(Arc::clone(pool));
    }
    let started = Pool::start(Options::with_workers(processors()))
        .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))?;
    let started = Arc::new(started);
    if let Some((_, of_parent)) = pool.replace((forks, Arc::clone(&started))) {
        // Its threads are not in this process, so they cannot be joined.
        std::mem::forget(of_parent);
    }
    Ok(started)
}

/// Runs `work` without the interpreter's lock, with this process's pool.
///
/// # Errors
/// If the process was forked while a verb ran.
pub fn without_interpreter<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    if IS_UNUSABLE.load(Ordering::Relaxed) {
        let text = "this process was forked while refrain was at work: use spawn or forkserver";
        return Err(usage(py, text));
    }
    let pool = match forks() {
        0 => None,
        forks => Some(child_pool(forks)?),
    };
    let _running = Running::begin();
    Ok(py.detach(|| match pool {
        None => work(),
        Some(pool) => install(&pool, Entity::new(Class::Normal), work),
    }))
}
