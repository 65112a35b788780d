//! Scopes: any number of jobs that borrow, all ended when the scope is.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use refrain_timer::sync::{Mutex, lock};

use super::borrowed::{Lender, lending};
use super::flow::Flow;
use super::job::{JobError, Promise, Step, catch};
use super::local::here;
use super::shares::Task;
use super::worker::Local;
use crate::Cancellation;

type Panic = Box<dyn std::any::Any + Send>;

/// Where jobs of a scope are made. See [`scope()`].
pub struct Scope<'scope, 'env: 'scope> {
    lender: &'scope Lender<'env>,
    state: Arc<State>,
}

/// What jobs share with their scope.
#[derive(Default)]
struct State {
    /// The first panic of a job.
    panic: Mutex<Option<Panic>>,
    cancellation: Cancellation,
}

impl<'env> Scope<'_, 'env> {
    /// Runs `job` some time before the scope ends, on an idle worker if there is one; not at all if the scope is cancelled before. Outside of a
    /// pool: now.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'env) {
        let state = Arc::clone(&self.state);
        let mut job = Some(job);
        let body = self.lender.lend(Box::new(move || {
            let Some(job) = job.take() else {
                return Step::Done;
            };
            // Its drop may panic as well.
            let job = AssertUnwindSafe(|| match state.cancellation.is_cancelled() {
                true => drop(job),
                false => job(),
            });
            if let Err(payload) = catch_unwind(job) {
                state.cancellation.cancel();
                lock(&state.panic).get_or_insert(payload);
            }
            Step::Done
        }));
        here(
            |local| match local.and_then(|local| Some((local, local.flow()?))) {
                Some((local, flow)) => local.share(&flow, Task::Job(body)),
                None => {
                    let mut body = body;
                    body();
                }
            },
        );
    }

    /// Jobs that have not started will not; those that run may look at [`Scope::cancellation`].
    pub fn cancel(&self) {
        self.state.cancellation.cancel();
    }

    /// Set when the scope is cancelled or one of its jobs has panicked.
    pub fn cancellation(&self) -> &Cancellation {
        &self.state.cancellation
    }
}

/// Runs `body`, which may spawn jobs that borrow what outlives the call, and waits for them. While it waits it works on them, and on nothing
/// else of lesser urgency.
///
/// # Panics
/// With the panic of `body`, or else with the first one of a job (which cancels the scope), after all that started have ended.
pub fn scope<'env, R>(body: impl FnOnce(&Scope<'_, 'env>) -> R) -> R {
    let state = Arc::new(State::default());
    let result = lending(|lender: &Lender<'env>| {
        let scope = Scope {
            lender,
            state: Arc::clone(&state),
        };
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        if result.is_err() {
            state.cancellation.cancel();
        }
        here(|local: Option<&Local>| {
            if let Some((local, flow)) = local.and_then(|local| Some((local, local.flow()?))) {
                local.wait_for(&flow, || lender.count() == 0);
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

/// Runs `job` on `flow` and waits, from a thread outside of the pool.
pub(crate) fn run_and_wait<T: Send>(
    flow: &Flow,
    job: impl FnOnce() -> T + Send,
) -> Result<T, JobError> {
    lending(|lender| {
        let (promise, handle) = Promise::new();
        let mut job = Some((job, promise));
        flow.submit_body(lender.lend(Box::new(move || {
            if let Some((job, promise)) = job.take() {
                promise.keep(catch(job));
            }
            Step::Done
        })));
        handle.wait()
    })
}
