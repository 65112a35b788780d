//! A verb that runs: cancelled from any thread, watched by a Python function, interrupted by
//! signals.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;
use refrain::{Error, ErrorKind, Progress, Watch};
use refrain_pool::{Lock, while_wanted};
use refrain_sync::clock::monotonic_ns;

use crate::error::to_python;
use crate::process;

/// How often signals are looked at, in nanoseconds: it takes the interpreter's lock, for which
/// other threads may make us wait.
const SIGNALS_INTERVAL_NS: u64 = 50_000_000;

/// What those who work for a verb share: whether it is cancelled, and the exception that did it.
#[derive(Default)]
pub struct JobState {
    cancelled: AtomicBool,
    exception: Lock<Option<PyErr>>,
    /// When signals were looked at.
    checked_at_ns: AtomicU64,
}

impl JobState {
    /// Ends the verb.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Ends the verb, which then raises this exception. The first one counts.
    pub fn fail(&self, exception: PyErr) {
        self.exception.lock().get_or_insert(exception);
        self.cancel();
    }

    /// The exception that ended the verb, once.
    pub fn take_exception(&self) -> Option<PyErr> {
        self.exception.lock().take()
    }

    /// Whether the verb ends.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Runs the handlers of signals that have arrived, if this is the main thread and it is time.
    pub fn check_signals(&self) {
        if !process::is_main_thread() {
            return;
        }
        let now_ns = monotonic_ns();
        let before_ns = self.checked_at_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(before_ns) < SIGNALS_INTERVAL_NS {
            return;
        }
        self.checked_at_ns.store(now_ns, Ordering::Relaxed);
        if let Some(Err(exception)) = Python::try_attach(|py| py.check_signals()) {
            self.fail(exception);
        }
    }
}

/// A verb that can be cancelled from another thread.
#[pyclass(frozen, module = "refrain._refrain")]
#[derive(Default)]
pub struct Job(pub Arc<JobState>);

#[pymethods]
impl Job {
    #[new]
    fn new() -> Job {
        Job::default()
    }

    /// Ends the verb at its next step; it then raises `CancelledError`.
    fn cancel(&self) {
        self.0.cancel();
    }

    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

struct PythonWatch {
    state: Arc<JobState>,
    progress: Option<Py<PyAny>>,
    /// What was told last.
    told: Cell<Progress>,
}

impl Watch for PythonWatch {
    fn progress(&self, progress: &Progress) {
        self.state.check_signals();
        let Some(callback) = &self.progress else {
            return;
        };
        // A verb may read an archive twice, and tells of its content only the first time.
        let told = self.told.get();
        let done = progress.content_bytes_done.max(told.content_bytes_done);
        let total = progress.content_bytes_total.or(told.content_bytes_total);
        let archive_bytes = progress.archive_bytes.max(told.archive_bytes);
        self.told.set(Progress {
            content_bytes_done: done,
            content_bytes_total: total,
            archive_bytes,
        });
        let numbers = (done, total, archive_bytes);
        if self.state.is_cancelled() {
            return;
        }
        if let Some(Err(exception)) = Python::try_attach(|py| callback.call1(py, numbers)) {
            self.state.fail(exception);
        }
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        self.state.check_signals();
        Some(&self.state.cancelled)
    }
}

/// Runs a verb without the interpreter's lock.
///
/// # Errors
/// The exception of a callback, a file object or a signal handler; otherwise the engine's error.
pub fn run<R: Send>(
    py: Python<'_>,
    state: &Arc<JobState>,
    progress: Option<Py<PyAny>>,
    verb: impl FnOnce(&dyn Watch) -> refrain::Result<R> + Send,
) -> PyResult<R> {
    let watched = Arc::clone(state);
    let result = process::without_interpreter(py, move || {
        let watch = PythonWatch {
            state: watched,
            progress,
            told: Cell::default(),
        };
        verb(&watch)
    })?;
    // What was completed remains, even if a signal came with its last bytes.
    match (result, state.take_exception()) {
        (Ok(done), None) => Ok(done),
        (_, Some(exception)) => Err(exception),
        (Err(error), None) => Err(to_python(py, &error)),
    }
}

/// Runs what only reads, as [`run`]. It also ends while this thread decodes a block, which can take
/// minutes.
pub fn run_read<R: Send>(
    py: Python<'_>,
    state: &Arc<JobState>,
    progress: Option<Py<PyAny>>,
    verb: impl FnOnce(&dyn Watch) -> refrain::Result<R> + Send,
) -> PyResult<R> {
    let asked = Arc::clone(state);
    let is_unwanted = move || {
        asked.check_signals();
        asked.is_cancelled()
    };
    run(py, state, progress, move |watch| {
        let cancelled = || Err(Error::new(ErrorKind::Cancelled, "the read was interrupted"));
        while_wanted(is_unwanted, || verb(watch)).unwrap_or_else(cancelled)
    })
}
