//! Flows: long-lived streams of jobs, the things that are scheduled.
//!
//! A flow carries deadline and slice across its sleeps (they are in its [`Entity`]); its jobs do not have any. Its jobs run one at a time and
//! in the order in which they were submitted, on whatever worker the policy says.
//!
//! ```text
//!             submit                     a worker takes it
//!   ASLEEP ────────────▶ QUEUED ──────────────────────────▶ RUNNING
//!     ▲                    ▲                                  │ │
//!     │                    └── slice over, gives way ─────────┘ │
//!     └──────── mailbox empty ──────────────────────────────────┘
//! ```
//!
//! A flow that is handed over goes from ASLEEP to RUNNING at once: it is its worker's next (`worker/next.rs`), and QUEUED only if it does not come
//! next after all.
//!
//! State, mailbox and entity are behind one lock, so the step to ASLEEP and a submission exclude each other: a job that comes while the
//! flow is QUEUED or RUNNING is found by whoever runs it, one that comes later queues the flow. No job waits in a flow that sleeps.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use refrain_policy::topology::CpuId;
use refrain_policy::{Entity, Key, Place, Policy};
use refrain_timer::sync::ShortLock;

use super::domain::Domain;
use super::job::{self, Body, JobError, JobHandle, Step};
use super::local::here;
use super::shares::Shares;
use super::view::View;
use super::{scope, task};

/// Whether a flow has something to do, and who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Asleep,
    Queued,
    Running,
}

/// What the lock of a flow guards.
pub(crate) struct Core {
    pub(crate) entity: Entity,
    pub(crate) state: State,
    pub(crate) mailbox: VecDeque<Body>,
    /// The first panic of a job that has no handle.
    pub(crate) panic: Option<JobError>,
    /// What others ran of its forks since it began its slice, in nanoseconds.
    pub(crate) helped_ns: u64,
}

/// On lines of its own (two, since they are fetched in pairs): its worker writes them at every hop, whatever else lies beside it.
#[repr(align(128))]
pub(crate) struct FlowCore {
    pub(crate) domain: Arc<Domain>,
    pub(crate) core: ShortLock<Core>,
    /// Forks of its joins and jobs of its scopes that others may take.
    pub(crate) shares: Shares,
}

/// A stream of jobs with a place in the order. Clones are the same flow.
///
/// Dropping all clones frees it once its jobs are done and the worker that ran them last has had nothing to do.
#[derive(Clone)]
pub struct Flow {
    pub(crate) inner: Arc<FlowCore>,
}

/// What waits in a stripe.
pub(crate) enum Entry {
    /// A flow with jobs.
    Run(Flow),
    /// A flow that runs already and has forks for others.
    Help(Flow),
}

impl Entry {
    pub(crate) fn is_allowed(&self, policy: &impl Policy, view: &View<'_>, cpu: CpuId) -> bool {
        let (Entry::Run(flow) | Entry::Help(flow)) = self;
        policy.may_take(&flow.inner.core.lock().entity, cpu, view)
    }
}

impl Flow {
    pub(crate) fn new(domain: Arc<Domain>, entity: Entity) -> Flow {
        Flow {
            inner: Arc::new(FlowCore {
                domain,
                core: ShortLock::new(Core {
                    entity,
                    state: State::Asleep,
                    mailbox: VecDeque::new(),
                    panic: None,
                    helped_ns: 0,
                }),
                shares: Shares::default(),
            }),
        }
    }

    /// Queues `job`. Its panic, if any, stays with the flow: [`Flow::take_panic`].
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let mut job = Some(job);
        self.submit_body(Box::new(move || {
            if let Some(job) = job.take() {
                job();
            }
            Step::Done
        }));
    }

    /// Like [`Flow::submit`], for a job that has nothing left to do once it has submitted this: a processor that is about to be free is not
    /// taken away from anybody ("sync wake-up").
    pub fn hand_over(&self, job: impl FnOnce() + Send + 'static) {
        let mut job = Some(job);
        let body: Body = Box::new(move || {
            if let Some(job) = job.take() {
                job();
            }
            Step::Done
        });
        self.submit_from(body, true);
    }

    /// Queues a job that is done in pieces: between two of them the flow may have to give way. Its panic stays with the flow.
    pub fn submit_steps(&self, steps: impl FnMut() -> Step + Send + 'static) {
        self.submit_body(Box::new(steps));
    }

    /// Queues `job`; the handle tells how it ended. To cancel a job that has started, give it a [`crate::Cancellation`].
    pub fn spawn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JobHandle<T> {
        let (body, handle) = job::once(job);
        self.submit_body(body);
        handle
    }

    /// Runs a future on this flow: each wake-up submits a poll.
    pub fn spawn_future<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JobHandle<T> {
        task::spawn(self, future)
    }

    /// Runs `job` on this flow and waits for it; the job may borrow. Called by a job of a pool, it runs `job` right there.
    ///
    /// # Errors
    /// The job's panic; [`JobError::Cancelled`] when the pool has closed.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, JobError> {
        if here(|local| local.is_some()) {
            return job::catch(job);
        }
        scope::run_and_wait(self, job)
    }

    /// Drops the jobs that have not started (one that was [handed over](Flow::hand_over) to be the next has); their owners get [`JobError::Cancelled`]. How many there were.
    pub fn cancel(&self) -> usize {
        let unstarted = std::mem::take(&mut self.inner.core.lock().mailbox);
        // Dropped outside of the lock: a job's drop may submit to this flow.
        unstarted.len()
    }

    /// Jobs that have not started.
    pub fn queued(&self) -> usize {
        self.inner.core.lock().mailbox.len()
    }

    /// The first panic of a job without a handle since the last call.
    pub fn take_panic(&self) -> Option<JobError> {
        self.inner.core.lock().panic.take()
    }

    /// What the policy knows of this flow, now.
    pub fn entity(&self) -> Entity {
        self.inner.core.lock().entity
    }

    /// Changes what the policy knows of this flow.
    pub(crate) fn with_entity<R>(&self, change: impl FnOnce(&mut Entity) -> R) -> R {
        change(&mut self.inner.core.lock().entity)
    }

    pub(crate) fn submit_body(&self, body: Body) {
        self.submit_from(body, false);
    }

    /// The way of a wake-up, first half: into the mailbox and, if the flow slept, into a stripe or to its worker as the next one.
    fn submit_from(&self, body: Body, is_sync: bool) {
        let domain = &self.inner.domain;
        let mut core = self.inner.core.lock();
        if core.state != State::Asleep {
            return core.mailbox.push_back(body);
        }
        let caller = domain.as_caller(|local| (local.cpu, local.read_ns()));
        let waker = caller.map(|(cpu, _)| cpu);
        let view = domain.view_at(caller.map_or_else(|| domain.now_ns(), |(_, read_ns)| read_ns));
        let place = domain.policy.wake(&mut core.entity, waker, is_sync, &view);
        let may_be_next = is_sync && matches!(place, Place::Queue(_));
        let next_on =
            waker.filter(|cpu| may_be_next && domain.policy.may_take(&core.entity, *cpu, &view));
        if let Some(cpu) = next_on {
            core.state = State::Running;
            let grant = domain.policy.run(&mut core.entity, cpu, &view);
            let key = domain.policy.key(&core.entity, &view);
            let nice = core.entity.nice;
            drop(core);
            domain.as_caller(|local| {
                local.keep_order();
                local.next.fill(local.held(self), body, key, nice, &grant);
            });
            return;
        }
        core.state = State::Queued;
        core.mailbox.push_back(body);
        let key = domain.policy.key(&core.entity, &view);
        let allowed = core.entity.allowed;
        drop(core);
        domain.enqueue(key, Entry::Run(self.clone()), place, &allowed, &view);
    }

    /// The pool has closed: nothing will run any more.
    pub(crate) fn give_up(&self) {
        let mut core = self.inner.core.lock();
        core.state = State::Asleep;
        let unstarted = std::mem::take(&mut core.mailbox);
        drop(core);
        // A drop that panics must not keep the others from being dropped.
        for body in unstarted {
            let _ = job::catch(|| drop(body));
        }
    }

    /// The key it has now.
    pub(crate) fn key(&self) -> Key {
        let domain = &*self.inner.domain;
        let view = domain.view();
        domain.policy.key(&self.inner.core.lock().entity, &view)
    }
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let core = self.inner.core.lock();
        formatter
            .debug_struct("Flow")
            .field("state", &core.state)
            .field("queued", &core.mailbox.len())
            .field("entity", &core.entity)
            .finish()
    }
}
