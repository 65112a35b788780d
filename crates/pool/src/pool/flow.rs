//! What users do with a flow: submit, run, cancel. The type and its phases are in
//! `state/domain.rs`.

use refrain_policy::{Entity, Policy};
use refrain_trace::EventKind;

use super::borrowed::with_borrowed_jobs;
use super::job::{self, JobBody, JobError, JobHandle, Promise, catch};
use super::state::current::with_current;
use super::state::domain::Flow;
use crate::trace;

impl Flow {
    /// Queues `job`. A panic in it ends there, after the process's panic hook has reported it.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) {
        self.submit_body(Box::new(job));
    }

    /// Queues `job` and returns a handle for its result. To cancel a job that has started, pass it
    /// a [`Cancellation`](crate::Cancellation).
    pub fn spawn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JobHandle<T> {
        let (body, handle) = job::once(job);
        self.submit_body(body);
        handle
    }

    /// Runs `job` on this flow and waits for it; the job may borrow. Inside a job of a pool, it
    /// runs `job` in place.
    ///
    /// # Errors
    /// The job's panic; [`JobError::Cancelled`] when the pool has closed.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, JobError> {
        if with_current(|worker| worker.is_some()) {
            return catch(job);
        }
        with_borrowed_jobs(|borrowed| {
            let (promise, handle) = Promise::new();
            let body = Box::new(move || promise.complete(catch(job)));
            self.submit_body(borrowed.without_lifetime(body));
            handle.wait()
        })
    }

    /// Drops the jobs that have not started; their handles return [`JobError::Cancelled`].
    /// Returns the number of dropped jobs.
    pub fn cancel(&self) -> usize {
        let unstarted = std::mem::take(&mut self.shared.state.lock().mailbox);
        // Dropped outside the lock: the drop of a job may submit to this flow.
        unstarted.len()
    }

    /// The policy's current record of this flow.
    pub(crate) fn entity(&self) -> Entity {
        self.shared.state.lock().entity
    }

    /// The first half of a wake-up: into the mailbox and, if the flow sleeps, into a stripe.
    pub(crate) fn submit_body(&self, body: JobBody) {
        let domain = &self.shared.domain;
        let mut state = self.shared.state.lock();
        let is_serial = self.shared.group.limit().is_none();
        if state.is_queued || is_serial && state.turns > 0 {
            return state.mailbox.push_back(body);
        }
        trace::instant(EventKind::Ready, self.shared.number, || 0);
        let caller = domain.with_caller(|worker| (worker.cpu, worker.last_ns()));
        let waker = caller.map(|(cpu, _)| cpu);
        let view = domain.view_at(caller.map_or_else(|| domain.now_ns(), |(_, last_ns)| last_ns));
        let place = domain.policy.wake(&mut state.entity, waker, false, &view);
        state.is_queued = true;
        state.mailbox.push_back(body);
        let key = domain.policy.key(&state.entity, &view);
        let allowed = state.entity.allowed;
        drop(state);
        domain.enqueue(key, self.clone(), place, &allowed, &view);
    }
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.shared.state.lock();
        formatter
            .debug_struct("Flow")
            .field("turns", &state.turns)
            .field("queued", &state.mailbox.len())
            .field("entity", &state.entity)
            .finish()
    }
}
