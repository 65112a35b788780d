//! Scopes: any number of jobs that borrow; all have ended when the scope ends.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use refrain_sync::{Mutex, lock};

use super::borrowed::{BorrowedJobs, with_borrowed_jobs};
use super::job::Step;
use super::state::context::WorkerContext;
use super::state::current::with_current;
use super::state::shared_tasks::TaskBody;
use crate::cancel::Cancellation;

type Panic = Box<dyn std::any::Any + Send>;

/// Spawns the jobs of a scope. See [`scope()`].
pub struct Scope<'scope, 'env: 'scope> {
    borrowed: &'scope BorrowedJobs<'env>,
    state: Arc<ScopeState>,
}

#[derive(Default)]
struct ScopeState {
    panic: Mutex<Option<Panic>>,
    cancellation: Cancellation,
}

impl<'env> Scope<'_, 'env> {
    /// Runs `job` before the scope ends, on an idle worker if there is one. If the scope is
    /// cancelled first, the job is dropped. Outside a pool it runs at once.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'env) {
        let state = Arc::clone(&self.state);
        let mut job = Some(job);
        let body =
            self.borrowed.without_lifetime(Box::new(move || {
                let Some(job) = job.take() else {
                    return Step::Done;
                };
                // Its drop may panic as well.
                let job = AssertUnwindSafe(|| {
                    if state.cancellation.is_cancelled() { drop(job) } else { job() }
                });
                if let Err(payload) = catch_unwind(job) {
                    state.cancellation.cancel();
                    lock(&state.panic).get_or_insert(payload);
                }
                Step::Done
            }));
        with_current(
            |worker| match worker.and_then(|worker| Some((worker, worker.flow()?))) {
                Some((worker, flow)) => worker.share(&flow, TaskBody::ScopeJob(body)),
                None => {
                    let mut body = body;
                    body();
                }
            },
        );
    }

    /// Cancels the scope: jobs that have not started are dropped. Running jobs can check
    /// [`Scope::cancellation`].
    pub fn cancel(&self) {
        self.state.cancellation.cancel();
    }

    /// The flag that is set when the scope is cancelled or one of its jobs has panicked.
    pub fn cancellation(&self) -> &Cancellation {
        &self.state.cancellation
    }
}

/// Runs `body`, which may spawn jobs that borrow what outlives the call, and waits for them. While
/// it waits it runs these jobs, and nothing less urgent.
///
/// # Panics
/// With the panic of `body`, or else with the first panic of a job (which cancels the scope), after
/// all started jobs have ended.
pub fn scope<'env, R>(body: impl FnOnce(&Scope<'_, 'env>) -> R) -> R {
    let state = Arc::new(ScopeState::default());
    let result = with_borrowed_jobs(|borrowed: &BorrowedJobs<'env>| {
        let scope = Scope {
            borrowed,
            state: Arc::clone(&state),
        };
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        if result.is_err() {
            state.cancellation.cancel();
        }
        with_current(|worker: Option<&WorkerContext>| {
            if let Some((worker, flow)) = worker.and_then(|worker| Some((worker, worker.flow()?))) {
                worker.wait_for(&flow, || borrowed.outstanding() == 0);
            }
        });
        result
    });
    let panic = lock(&state.panic).take();
    match (result, panic) {
        (Ok(result), None) => result,
        (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
    }
}
