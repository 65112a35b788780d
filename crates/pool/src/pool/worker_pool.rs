//! The pool as its users see it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use refrain_policy::topology::{Machine, Topology};
use refrain_policy::{Class, Entity, Policy, Scheme};
use refrain_timer::TimerId;

use super::state::current::with_current;
use super::state::domain::{Domain, DomainPlan, Flow, TimerJob};
use super::state::flow_group::FlowGroup;
use super::tenants::Tenants;
use super::worker;
use crate::error::Error;
use crate::thread::class::KernelClass;
use crate::thread::settings::ThreadSettings;

/// The settings of a new pool.
#[derive(Debug, Clone)]
pub struct Options {
    /// The machine, or a part of it: one worker for each CPU.
    pub topology: Topology,
    /// The policy that decides which flow runs when.
    pub policy: Scheme,
    /// The longest time that an idle worker stays awake before it parks. The actual time depends on
    /// how often it was woken lately and on the machine's load ([`idle`](crate::idle)). A wake-up
    /// in that time takes no system call. Zero: it parks at once.
    pub spin: Duration,
    /// Whether each worker stays on the processors behind its last-level cache, if the topology has
    /// several caches. Its CPUs must then be those of this machine.
    pub binds_workers: bool,
}

/// The longest spin that [`SpinPolicy`](refrain_policy::SpinPolicy) allows.
const SPIN_DEFAULT: Duration = Duration::from_micros(200);

impl Options {
    /// The default policy with `workers` workers (at least one) at equal distances.
    pub fn with_workers(workers: usize) -> Options {
        Options {
            topology: Topology::flat(workers),
            policy: Scheme::default(),
            spin: SPIN_DEFAULT,
            binds_workers: false,
        }
    }

    /// One worker for each CPU of this machine, bound to its last-level cache. Below a quota of CPU
    /// time there are fewer, which the kernel places.
    pub fn on_machine(machine: &Machine) -> Options {
        let workers = machine.workers();
        if workers < machine.topology.len() {
            return Options::with_workers(workers);
        }
        Options {
            topology: machine.topology.clone(),
            binds_workers: true,
            ..Options::with_workers(workers)
        }
    }
}

/// Worker threads, and the flows that run on them.
///
/// Dropping a pool finishes the running jobs, drops all others and joins the threads.
pub struct Pool {
    pub(super) normal: Arc<Domain>,
    /// Workers that the kernel runs when a processor has nothing else to do; made with the first
    /// flow of the idle class.
    idle: OnceLock<Arc<Domain>>,
    settings: ThreadSettings,
    options: Options,
    pub(crate) tenants: Arc<Tenants>,
}

impl Pool {
    /// Starts a pool with one worker; the others start when there is work for them.
    ///
    /// No thread of the pool inherits the state of the thread that starts it. Scheduling class,
    /// nice value, processors and signal mask are the process's at the time when the pool was made.
    ///
    /// # Errors
    /// [`Error::ThreadUnavailable`] when the system refuses the first thread.
    pub fn start(options: Options) -> Result<Pool, Error> {
        Pool::start_with(options, ThreadSettings::from_process(KernelClass::Normal))
    }

    pub(crate) fn start_with(options: Options, settings: ThreadSettings) -> Result<Pool, Error> {
        let normal = new_domain(&options, "worker", settings.clone());
        let pool = Pool {
            tenants: Tenants::new(&normal),
            normal,
            idle: OnceLock::new(),
            settings,
            options,
        };
        pool.normal.start_first()?;
        Ok(pool)
    }

    /// Makes a flow with the properties of `entity`. If a job of this pool makes it, the new flow
    /// shares the slice of the job's flow.
    ///
    /// Flows of the idle class have separate threads, in the kernel's idle class (Linux:
    /// `SCHED_IDLE`): other flows get the processor at once, whether or not the idle jobs pass
    /// checkpoints. Where there is no such class they run on the normal workers, after all others.
    pub fn flow(&self, entity: Entity) -> Flow {
        let group = self.domain(entity.class).new_group(&entity, None);
        self.new_flow(entity, Arc::new(group))
    }

    /// Makes a group of flows whose jobs may run at the same time, on at most `turns_max` workers
    /// (at least one) for the whole group. The jobs of one flow start in the order of their
    /// submission.
    pub fn parallel_flows<const COUNT: usize>(
        &self,
        entities: [Entity; COUNT],
        turns_max: usize,
    ) -> [Flow; COUNT] {
        let first = entities.first().copied();
        let first = first.unwrap_or(Entity::new(Class::Normal));
        let group = self.domain(first.class).new_group(&first, Some(turns_max));
        let group = Arc::new(group);
        entities.map(|entity| self.new_flow(entity, Arc::clone(&group)))
    }

    fn new_flow(&self, mut entity: Entity, group: Arc<FlowGroup>) -> Flow {
        let domain = self.domain(entity.class);
        let parent = with_current(|worker| {
            let worker = worker?;
            Arc::ptr_eq(&worker.domain, domain).then(|| worker.flow())?
        });
        let view = domain.view();
        match parent {
            Some(parent) => parent.with_entity(|parent| {
                domain.policy.admit(&mut entity, Some(parent), &view);
            }),
            None => domain.policy.admit(&mut entity, None, &view),
        }
        Flow::new(Arc::clone(domain), entity, group)
    }

    /// The number of workers of the normal class.
    pub fn workers(&self) -> usize {
        self.normal.workers.len()
    }

    /// Whether a flow of the isochronous or normal class runs now. Background work can use it to
    /// postpone what is not urgent. BFS's `above_background_load`.
    pub fn has_foreground_load(&self) -> bool {
        self.normal.workers.iter().any(|worker| {
            worker
                .running()
                .class()
                .is_some_and(|class| class != Class::Idle)
        })
    }

    /// Submits `job` to `flow` after `delay`. [`Pool::cancel`] takes the returned id.
    ///
    /// The calling worker fires it: at its next checkpoint or between two jobs, or from its sleep.
    /// For other threads an idle worker does, or else the first. If a worker computes without
    /// checkpoints, its timers are late by as much, unless another is idle or passes some. The flow
    /// then runs by the policy; if it is more urgent, on top of a job that passes a checkpoint.
    pub fn after(
        &self,
        delay: Duration,
        flow: &Flow,
        job: impl FnOnce() + Send + 'static,
    ) -> TimerId {
        self.normal.add_timer(delay, TimerJob::new(flow, job))
    }

    /// Cancels a timer of [`Pool::after`]; its job is dropped. Returns `false` if it has fired or
    /// was cancelled before.
    pub fn cancel(&self, timer: TimerId) -> bool {
        self.normal.timers.cancel(timer).is_some()
    }

    fn domain(&self, class: Class) -> &Arc<Domain> {
        match class {
            Class::Idle => self.idle_domain(),
            Class::Iso | Class::Normal => &self.normal,
        }
    }

    fn idle_domain(&self) -> &Arc<Domain> {
        if !cfg!(target_os = "linux") {
            return &self.normal;
        }
        self.idle.get_or_init(|| {
            let settings = self.settings.with_class(KernelClass::Idle);
            let idle = new_domain(&self.options, "idle", settings);
            // Without its own threads the idle class runs on the normal workers.
            match idle.start_first() {
                Ok(()) => idle,
                Err(_) => Arc::clone(&self.normal),
            }
        })
    }
}

fn new_domain(options: &Options, name: &'static str, settings: ThreadSettings) -> Arc<Domain> {
    Domain::new(DomainPlan {
        name,
        topology: options.topology.clone(),
        binds_workers: options.binds_workers,
        policy: options.policy.clone(),
        settings,
        spin_ns: u64::try_from(options.spin.as_nanos()).unwrap_or(u64::MAX),
        run_worker: worker::run_loop::run,
    })
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(idle) = self.idle.get() {
            idle.close();
        }
        self.normal.close();
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
