//! Worker threads that run flows by the [policy](refrain_policy).
//!
//! A [`Flow`] is a long-lived stream of jobs; it is what the policy schedules. A job that takes longer than some tens of microseconds calls
//! [`checkpoint`] now and then, so that more urgent flows can run on top of it. Inside a job [`join`] and [`scope()`] use idle workers.
//! `README.md` beside this file follows a wake-up from submission to run, and says why no one is lost.
//!
//! ```
//! use refrain_policy::{Class, Entity};
//! use refrain_pool::pool::{Options, Pool, checkpoint, join};
//!
//! let pool = Pool::start(Options::with_workers(2))?;
//! let background = pool.flow(Entity::new(Class::Idle));
//! let sum = background.spawn(|| {
//!     let mut sum = 0u64;
//!     for number in 0..1000 {
//!         sum += number;
//!         checkpoint();
//!     }
//!     sum
//! });
//! let urgent = pool.flow(Entity::new(Class::Iso));
//! assert_eq!(urgent.run(|| join(|| 1, || 2))?, (1, 2));
//! assert_eq!(sum.wait()?, 499_500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod badge;
mod borrowed;
mod domain;
mod flow;
mod fork;
mod histogram;
mod idle;
mod job;
mod join;
mod local;
#[cfg(all(test, loom))]
mod models;
mod pacer;
mod profile;
mod scope;
mod shares;
mod signal;
pub(crate) mod system;
mod task;
#[cfg(all(test, not(loom)))]
mod tests;
mod timers;
mod view;
mod worker;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use borrowed::{Lender, lending};
pub use flow::Flow;
pub use histogram::Times;
pub(crate) use job::Body;
pub use job::{JobError, JobHandle, Step};
pub use join::join;
pub use profile::{Profile, WorkerProfile};
pub use scope::{Scope, scope};
pub use timers::{Alarm, Bell};

use refrain_policy::topology::{CpuId, Topology};
use refrain_policy::{Class, Entity, Policy, Scheme};
use refrain_timer::{TimerId, TimerSystem, deadline_after};

use crate::Error;
use domain::{Domain, Plan};
use local::here;
use system::KernelClass;

/// What a job learns at a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Go on.
    Go,
    /// The flow's slice is over and others wait: a job that is done in pieces ends this one. Said once per slice.
    GiveWay,
}

/// Lets whoever is more urgent run first, on top of the calling job; costs one relaxed load when nobody is.
///
/// Nothing runs on top of a job that holds a [`Lock`](crate::Lock) or [`Permits`](crate::Permits). Outside of a pool it does nothing.
#[inline]
pub fn checkpoint() -> Pace {
    here(|local| match local {
        Some(local) if local.is_asked() => local.answer(),
        _ => Pace::Go,
    })
}

/// How a pool is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// The machine, or the part of it to use: one worker for each of its CPUs.
    pub topology: Topology,
    /// Who runs when.
    pub policy: Scheme,
    /// How long a worker without work stays awake before it parks, at most; how long it really does depends on how often it was woken lately, and
    /// on the load of the machine ([`idle`](crate::idle)). A wake-up meanwhile takes no system call. Zero: it parks at once.
    pub spin: Duration,
    /// Whether the gaps between checkpoints and the processor time are measured; then each checkpoint reads the clock.
    pub measures_gaps: bool,
}

/// As long as [`Habit`](crate::idle::Habit) ever asks for.
const SPIN_DEFAULT: Duration = Duration::from_micros(200);

impl Options {
    /// The default policy with `workers` workers (at least one), equally near to each other.
    pub fn with_workers(workers: usize) -> Options {
        Options {
            topology: Topology::flat(workers),
            policy: Scheme::default(),
            spin: SPIN_DEFAULT,
            measures_gaps: false,
        }
    }
}

/// Worker threads, and the flows that run on them.
///
/// Dropping it ends it: running jobs are finished, all others dropped, threads joined.
pub struct Pool {
    /// Workers of the kernel's usual class.
    front: Arc<Domain>,
    /// Workers that the kernel runs when a processor has nothing else to do; made with the first flow of the idle class.
    spare: OnceLock<Arc<Domain>>,
    options: Options,
}

impl Pool {
    /// A pool whose first worker runs; the others start when there is work for them.
    ///
    /// # Errors
    /// [`Error::ThreadUnavailable`] when the system gives no thread at all.
    pub fn start(options: Options) -> Result<Pool, Error> {
        let pool = Pool {
            front: domain(&options, "worker", KernelClass::Normal),
            spare: OnceLock::new(),
            options,
        };
        pool.front.start_first()?;
        Ok(pool)
    }

    /// A new flow, as `entity` describes it. Made by a job of this pool, it shares the slice of the flow that makes it.
    ///
    /// Flows of the idle class have threads of their own, in the kernel's idle class (Linux: `SCHED_IDLE`): other flows get the processor at
    /// once, whether or not their jobs pass checkpoints. Where there is no such class they run on the usual workers, after all others.
    pub fn flow(&self, entity: Entity) -> Flow {
        let domain = match entity.class {
            Class::Idle => self.spare(),
            Class::Iso | Class::Normal => &self.front,
        };
        let mut entity = entity;
        let parent = here(|local| {
            let local = local?;
            Arc::ptr_eq(&local.domain, domain).then(|| local.flow())?
        });
        let view = domain.view();
        match parent {
            Some(parent) => parent.with_entity(|parent| {
                domain.policy.admit(&mut entity, Some(parent), &view);
            }),
            None => domain.policy.admit(&mut entity, None, &view),
        }
        Flow::new(Arc::clone(domain), entity)
    }

    /// Workers of the usual class.
    pub fn workers(&self) -> usize {
        self.front.workers.len()
    }

    /// Whether a flow of the isochronous or normal class runs now: background work may want to hold back what it can put off. BFS's
    /// `above_background_load`.
    pub fn has_foreground_load(&self) -> bool {
        self.front.workers.iter().any(|worker| {
            worker
                .running()
                .class()
                .is_some_and(|class| class != Class::Idle)
        })
    }

    /// Time since the pool was made, in nanoseconds: the clock of its timers.
    pub fn now_ns(&self) -> u64 {
        self.front.now_ns()
    }

    /// Submits `job` to `flow` when `delay` has passed. The id is for [`Pool::timers`], to cancel it.
    ///
    /// Fires on time while workers compute: a thread of its own waits, and the flow runs by the policy, on top of a job that passes a
    /// checkpoint if it is more urgent.
    pub fn after(
        &self,
        delay: Duration,
        flow: &Flow,
        job: impl FnOnce() + Send + 'static,
    ) -> TimerId {
        // With the caller's own timers, so that callers do not wait for each other's lock.
        let worker = self.front.as_caller(|local| local.cpu.index());
        let deadline_ns = deadline_after(self.now_ns(), delay);
        self.timers()
            .add(worker.unwrap_or(0), deadline_ns, Alarm::new(flow, job))
    }

    /// The timers, for absolute deadlines ([`Pool::now_ns`]), cancelling, moving, and batches that are atomic. Dropped with the pool.
    pub fn timers(&self) -> &TimerSystem<Alarm, Bell> {
        self.front.pacer.ensure_thread(&self.front);
        &self.front.timers.system
    }

    /// What was counted so far.
    pub fn profile(&self) -> Profile {
        let domains = [Some(&self.front), self.spare.get()];
        Profile::of(domains.into_iter().flatten())
    }

    fn spare(&self) -> &Arc<Domain> {
        if !cfg!(target_os = "linux") {
            return &self.front;
        }
        self.spare.get_or_init(|| {
            let spare = domain(&self.options, "spare", KernelClass::Idle);
            // Without threads of its own the idle class runs on the usual workers.
            match spare.start_first() {
                Ok(()) => spare,
                Err(_) => Arc::clone(&self.front),
            }
        })
    }
}

fn domain(options: &Options, name: &'static str, kernel_class: KernelClass) -> Arc<Domain> {
    let domain = Domain::new(Plan {
        name,
        topology: options.topology.clone(),
        policy: options.policy.clone(),
        kernel_class,
        spin_ns: u64::try_from(options.spin.as_nanos()).unwrap_or(u64::MAX),
    });
    if options.measures_gaps {
        for worker in &domain.workers {
            worker.signal.set(signal::MEASURE);
        }
    }
    domain
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(spare) = self.spare.get() {
            spare.close();
        }
        self.front.close();
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}

/// Which worker of its pool the calling thread is; none for other threads. Flows may be confined to workers by this number.
pub fn current_worker() -> Option<CpuId> {
    here(|local| local.map(|local| local.cpu))
}
