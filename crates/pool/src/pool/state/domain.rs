//! A domain (the workers of one kernel scheduling class with their stripes and accounts) and the
//! flows that run on it. The types refer to each other, so they share this file.
//!
//! A flow carries its deadline and its slice across its sleeps (both are in its [`Entity`]); its
//! jobs have neither. Its jobs start in the order of their submission, on the workers that the
//! policy selects: one at a time, or, if the flow is parallel, on several workers at once.
//!
//! ```text
//!             submit                    a worker takes it
//!   ASLEEP ────────────▶ QUEUED ──────────────────────────▶ RUNNING
//!     ▲                    ▲                                  │ │
//!     │                    └── slice over, preempted ─────────┘ │
//!     └──────── mailbox empty ──────────────────────────────────┘
//! ```
//!
//! Phase, mailbox and entity are behind one lock, so the step to ASLEEP and a submission exclude
//! each other. The worker that runs a flow finds a job that arrives while the flow is QUEUED or
//! RUNNING; a job that arrives later queues the flow. A flow that sleeps has no jobs.
//!
//! A parallel flow can be QUEUED and RUNNING at once: it is queued as long as it has jobs, and each
//! worker that takes it queues it again for the next one. A group of parallel flows may be limited
//! to fewer workers than the domain has ([`FlowGroup`]).

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use refrain_policy::topology::{CpuId, StripeId, Topology};
use refrain_policy::{Entity, Latency, Ledger, Policy, Scheme};
use refrain_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use refrain_sync::clock::RealClock;
use refrain_sync::{Mutex, ShortLock};
use refrain_timer::TimerSystem;

use super::flow_group::FlowGroup;
use super::idle_set::IdleSet;
use super::spares::Spares;
use super::worker_status::WorkerStatus;
use crate::idle::MachineLoad;
use crate::pool::job::{self, JobBody};
use crate::run_queue::RunQueue;
use crate::thread::class::KernelClass;
use crate::thread::settings::ThreadSettings;

pub(crate) struct Domain {
    pub(crate) policy: Scheme,
    pub(crate) topology: Topology,
    pub(crate) ledger: Ledger,
    pub(crate) stripes: Box<[RunQueue<Flow>]>,
    pub(crate) stripe_of: Vec<StripeId>,
    pub(crate) workers: Vec<Arc<WorkerStatus>>,
    pub(crate) idle: IdleSet,
    pub(crate) timers: TimerSystem<TimerJob, TimerWaker>,
    /// When the watcher looks at the others by itself (`../watch.rs`).
    pub(crate) watch_ns: AtomicU64,
    /// The longest spin of an idle worker before it parks.
    pub(crate) spin_ns: u64,
    pub(crate) machine: MachineLoad,
    pub(crate) threads: Mutex<WorkerThreads>,
    pub(crate) spares: Spares,
    pub(crate) run_worker: RunWorker,
    pub(crate) name: &'static str,
    pub(crate) settings: ThreadSettings,
    /// Whether workers stay behind their last-level caches.
    pub(crate) binds_workers: bool,
    /// Each counted [`FlowGroup`] holds a copy.
    groups: Arc<()>,
    clock: RealClock,
    is_closing: AtomicBool,
}

/// The threads of a domain. Each starts with the first work for it, so a pool for little work never
/// makes threads that it cannot use.
#[derive(Default)]
pub(crate) struct WorkerThreads {
    pub(crate) handles: Vec<JoinHandle<()>>,
    pub(crate) has_started: Vec<bool>,
}

/// What the threads of a domain run. Passed to the domain when it is made, since that code is built
/// on the domain.
pub(crate) type RunWorker = fn(Arc<Domain>, CpuId);

/// Wakes a worker of the domain when a timer is added that is earlier than its others.
pub(crate) struct TimerWaker(pub(crate) Weak<Domain>);

pub(crate) struct DomainPlan {
    pub(crate) name: &'static str,
    pub(crate) topology: Topology,
    pub(crate) policy: Scheme,
    pub(crate) settings: ThreadSettings,
    pub(crate) binds_workers: bool,
    pub(crate) spin_ns: u64,
    pub(crate) run_worker: RunWorker,
}

impl Domain {
    pub(crate) fn new(plan: DomainPlan) -> Arc<Domain> {
        let workers = plan.topology.len();
        let stripe_of = plan.topology.stripes(plan.policy.sharing());
        let stripes = stripe_of.iter().map(|stripe| stripe.index() + 1).max();
        Arc::new_cyclic(|this| Domain {
            ledger: plan.policy.ledger(workers),
            stripes: (0..stripes.unwrap_or(1))
                .map(|_| RunQueue::default())
                .collect(),
            stripe_of,
            workers: (0..workers)
                .map(|_| Arc::new(WorkerStatus::new()))
                .collect(),
            idle: IdleSet::full(workers),
            timers: TimerSystem::new(workers, TimerWaker(Weak::clone(this))),
            watch_ns: AtomicU64::new(u64::MAX),
            spin_ns: plan.spin_ns,
            machine: MachineLoad::default(),
            threads: Mutex::new(WorkerThreads {
                handles: Vec::new(),
                has_started: vec![false; workers],
            }),
            spares: Spares::default(),
            run_worker: plan.run_worker,
            name: plan.name,
            settings: plan.settings,
            binds_workers: plan.binds_workers,
            groups: Arc::default(),
            clock: RealClock::new(),
            is_closing: AtomicBool::new(false),
            policy: plan.policy,
            topology: plan.topology,
        })
    }

    pub(crate) fn kernel_class(&self) -> KernelClass {
        self.settings.class()
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// A new group of flows with the properties of `entity`, which are parallel if it has a limit.
    pub(crate) fn new_group(&self, entity: &Entity, turns_max: Option<usize>) -> FlowGroup {
        // Flows of this latency class never preempt others.
        let is_counted = entity.latency != Latency::Insensitive;
        FlowGroup::new(turns_max, is_counted.then(|| Arc::clone(&self.groups)))
    }

    /// Whether there are other groups that could need a worker of `own` soon, at any time.
    pub(crate) fn has_others(&self, own: &FlowGroup) -> bool {
        Arc::strong_count(&self.groups) > 1 + usize::from(own.is_counted())
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.stripes.iter().any(|stripe| stripe.length() > 0)
    }
}

pub(crate) struct FlowState {
    pub(crate) entity: Entity,
    /// Whether it is in a stripe.
    pub(crate) is_queued: bool,
    /// The workers that run it now; at most one, unless the flow is parallel.
    pub(crate) turns: u32,
    pub(crate) mailbox: VecDeque<JobBody>,
}

/// A flow, shared by its handles. Aligned to two cache lines, since processors fetch lines in
/// pairs: its worker writes it at every hop, and neighbors must not slow that down.
#[repr(align(128))]
pub(crate) struct FlowShared {
    /// For the timeline; 0 if nothing was recorded when it was made.
    pub(crate) number: u32,
    pub(crate) domain: Arc<Domain>,
    pub(crate) state: ShortLock<FlowState>,
    pub(crate) group: Arc<FlowGroup>,
}

/// A stream of jobs that the policy schedules. Clones are handles of the same flow.
///
/// A flow is freed when all handles are dropped and its jobs are done.
#[derive(Clone)]
pub struct Flow {
    pub(crate) shared: Arc<FlowShared>,
}

/// A job that a timer submits to a flow when it fires.
pub(crate) struct TimerJob {
    pub(crate) flow: Flow,
    pub(crate) body: JobBody,
}

impl Flow {
    pub(crate) fn new(domain: Arc<Domain>, entity: Entity, group: Arc<FlowGroup>) -> Flow {
        Flow {
            shared: Arc::new(FlowShared {
                number: refrain_trace::new_flow(),
                domain,
                state: ShortLock::new(FlowState {
                    entity,
                    is_queued: false,
                    turns: 0,
                    mailbox: VecDeque::new(),
                }),
                group,
            }),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.shared.number
    }

    pub(crate) fn with_entity<R>(&self, change: impl FnOnce(&mut Entity) -> R) -> R {
        change(&mut self.shared.state.lock().entity)
    }

    /// Drops all jobs: the pool has closed and will not run them.
    pub(crate) fn abandon(&self) {
        let mut state = self.shared.state.lock();
        state.is_queued = false;
        let unstarted = std::mem::take(&mut state.mailbox);
        drop(state);
        // A job whose drop panics must not prevent dropping the others.
        for body in unstarted {
            let _ = job::catch(|| drop(body));
        }
    }
}
