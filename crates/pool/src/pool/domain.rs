//! A domain: workers of one kernel class, their stripes and accounts; and the way of a wake-up from a stripe to a worker.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use refrain_policy::topology::{CpuId, CpuMask, StripeId, Topology};
use refrain_policy::{Key, Ledger, Place, Policy, Rank, Scheme, View as _};
use refrain_timer::clock::RealClock;
use refrain_timer::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use refrain_timer::sync::{Mutex, fence, lock};

use super::flow::{Entry, Flow};
use super::idle::IdleSet;
use super::local::here;
use super::pacer::Pacer;
use super::system::{self, KernelClass};
use super::timers::Timers;
use super::view::View;
use super::worker::{Local, Worker};
use crate::Error;
use crate::idle::MachineLoad;
use crate::run_queue::RunQueue;

/// See the head of the file.
pub(crate) struct Domain {
    pub(crate) policy: Scheme,
    pub(crate) topology: Topology,
    pub(crate) ledger: Ledger,
    pub(crate) stripes: Box<[RunQueue<Entry>]>,
    /// By worker.
    pub(crate) stripe_of: Vec<StripeId>,
    pub(crate) workers: Vec<Arc<Worker>>,
    pub(crate) idle: IdleSet,
    pub(crate) pacer: Arc<Pacer>,
    pub(crate) timers: Timers,
    /// Joiners that sleep until somebody shares something of their flow.
    pub(crate) hungry: AtomicU32,
    /// How long an idle worker spins before it parks, at most.
    pub(crate) spin_ns: u64,
    /// Whether there is a processor to spin on.
    pub(crate) machine: MachineLoad,
    name: &'static str,
    kernel_class: KernelClass,
    clock: RealClock,
    is_closing: AtomicBool,
    threads: Mutex<Threads>,
}

/// The threads of a domain. They start with the work: a pool for little work never makes those that it cannot use.
#[derive(Default)]
struct Threads {
    handles: Vec<JoinHandle<()>>,
    has_started: Vec<bool>,
}

/// What a domain is made of.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) topology: Topology,
    pub(crate) policy: Scheme,
    pub(crate) kernel_class: KernelClass,
    pub(crate) spin_ns: u64,
}

impl Domain {
    pub(crate) fn new(plan: Plan) -> Arc<Domain> {
        let workers = plan.topology.len();
        let pacer = Arc::<Pacer>::default();
        let stripe_of = plan.topology.stripes(plan.policy.sharing());
        let stripes = stripe_of.iter().map(|stripe| stripe.index() + 1).max();
        Arc::new(Domain {
            ledger: plan.policy.ledger(workers),
            stripes: (0..stripes.unwrap_or(1))
                .map(|_| RunQueue::default())
                .collect(),
            stripe_of,
            workers: (0..workers).map(|_| Arc::new(Worker::new())).collect(),
            idle: IdleSet::full(workers),
            timers: Timers::new(workers, &pacer),
            pacer,
            hungry: AtomicU32::new(0),
            spin_ns: plan.spin_ns,
            machine: MachineLoad::default(),
            name: plan.name,
            kernel_class: plan.kernel_class,
            clock: RealClock::new(),
            is_closing: AtomicBool::new(false),
            threads: Mutex::new(Threads {
                handles: Vec::new(),
                has_started: vec![false; workers],
            }),
            policy: plan.policy,
            topology: plan.topology,
        })
    }

    pub(crate) fn kernel_class(&self) -> KernelClass {
        self.kernel_class
    }

    /// Time since the domain was made.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The domain as the policy sees it now; for a worker of it, at the time when that last read the clock.
    pub(crate) fn view(&self) -> View<'_> {
        let read_ns = self.as_caller(Local::read_ns);
        self.view_at(read_ns.unwrap_or_else(|| self.now_ns()))
    }

    /// The domain as the policy sees it at a time.
    pub(crate) fn view_at(&self, now_ns: u64) -> View<'_> {
        View {
            domain: self,
            now_ns,
        }
    }

    /// Calls `ask` with the worker of this domain that calls, if one does.
    pub(crate) fn as_caller<R>(&self, ask: impl FnOnce(&Local) -> R) -> Option<R> {
        here(|local| {
            let local = local?;
            std::ptr::eq(&raw const *local.domain, self).then(|| ask(local))
        })
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Whether a worker, or a joiner in one, has nothing to do.
    pub(crate) fn has_hungry(&self) -> bool {
        !self.idle.is_empty() || self.hungry.load(Ordering::Relaxed) > 0
    }

    /// Whether any worker joins, and so may have forks to share.
    pub(crate) fn is_forking(&self) -> bool {
        let mut workers = self.workers.iter();
        workers.any(|worker| worker.is_forking.load(Ordering::Relaxed))
    }

    /// Whether anything waits in any stripe.
    pub(crate) fn has_waiting(&self) -> bool {
        self.stripes.iter().any(|stripe| stripe.length() > 0)
    }

    /// Whether something that waits would go before a running flow with this key.
    pub(crate) fn is_preceded(&self, running: Key) -> bool {
        let best = self.stripes.iter().map(|stripe| stripe.best_key());
        let mut waiting = best.filter(|key| key.is_some()).peekable();
        if waiting.peek().is_none() {
            return false;
        }
        let view = self.view();
        let limit = self.policy.rank(running, &view);
        waiting.any(|key| self.policy.rank(key, &view) < limit)
    }

    /// The next entry for a worker and, where `before` names a running flow, only one that goes before that.
    pub(crate) fn take(&self, cpu: CpuId, before: Option<Key>, view: &View<'_>) -> Option<Entry> {
        let mut tried = CpuMask::EMPTY;
        let rank = |key| self.policy.rank(key, view);
        let limit = before.map_or(Rank::LAST, rank);
        while let Some(stripe) = self.policy.pick(cpu, &tried, view) {
            let queue = self.stripes.get(stripe.index())?;
            let found = queue.take(rank, limit, |entry| {
                entry.is_allowed(&self.policy, view, cpu)
            });
            if found.is_some() {
                return found;
            }
            // Stripes are counted as CPUs are: there are never more.
            let number = CpuId::new(stripe.index());
            if tried.contains(number) {
                return None;
            }
            tried.insert(number);
        }
        None
    }

    /// The way of a wake-up, second half: into the stripe, then to a worker.
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        key: Key,
        entry: Entry,
        place: Place,
        allowed: &CpuMask,
        view: &View<'_>,
    ) {
        let stripe = place.stripe(view).index().min(self.stripes.len() - 1);
        if let Err(Entry::Run(flow)) = self.stripes[stripe].push(key, entry) {
            return flow.give_up();
        }
        fence(Ordering::SeqCst);
        match place {
            Place::Idle(cpu) if self.idle.claim(cpu) => return self.wake(cpu),
            Place::Preempt(cpu) => {
                if let Some(worker) = self.workers.get(cpu.index()) {
                    worker.signal.ask(super::signal::GIVE_WAY, self.now_ns());
                    self.nudge(cpu);
                }
            }
            Place::Idle(_) | Place::Queue(_) => {}
        }
        // What the policy saw may be old: a worker may have gone idle since. See `idle.rs`.
        match self.idle.claim_any(allowed) {
            Some(cpu) => self.wake(cpu),
            // A worker that queues its own flow again is about to take the first one, and calls the pacer if another waits then.
            None if self.as_caller(Local::is_between_flows) == Some(true) => {}
            None => Pacer::attend(self),
        }
    }

    /// Somebody left the idle ones with work; if more waits, it is another's turn.
    pub(crate) fn pass_on(self: &Arc<Self>) {
        if self.has_waiting()
            && let Some(cpu) = self.idle.claim_any(&CpuMask::ALL)
        {
            self.wake(cpu);
        }
    }

    /// Wakes a worker that sleeps inside a join, if this one does.
    pub(crate) fn nudge(&self, cpu: CpuId) {
        fence(Ordering::SeqCst);
        if let Some(worker) = self.workers.get(cpu.index())
            && !worker.sleeper.is_woken()
        {
            worker.sleeper.wake();
        }
    }

    /// Asks somebody idle to take shares of `flow`, which runs; false if nobody is.
    pub(crate) fn call_helper(self: &Arc<Self>, flow: &Flow) -> bool {
        let allowed = flow.entity().allowed;
        let Some(cpu) = self.idle.claim_any(&allowed) else {
            return false;
        };
        let stripe = self
            .view()
            .stripe_of(cpu)
            .index()
            .min(self.stripes.len() - 1);
        // A closed domain needs no help.
        let _ = self.stripes[stripe].push(flow.key(), Entry::Help(flow.clone()));
        self.wake(cpu);
        true
    }

    /// Wakes a worker that the caller has claimed; makes its thread if it has none yet.
    fn wake(self: &Arc<Self>, cpu: CpuId) {
        let mut claimed = Some(cpu);
        let mut took_call = false;
        while let Some(cpu) = claimed {
            let Some(worker) = self.workers.get(cpu.index()) else {
                break;
            };
            if worker.thread() != 0 {
                took_call = worker.sleeper.wake();
                break;
            }
            took_call = true;
            if self.start(cpu) {
                break;
            }
            // No thread to be had: another worker, if there is one.
            claimed = self.idle.claim_any(&CpuMask::ALL);
        }
        here(|local| {
            if let Some(local) = local {
                local.worker.counters.wakes.add(1);
                local.worker.counters.wake_calls.add(u64::from(took_call));
            }
        });
    }

    /// Makes the thread of a worker. Where the system refuses, the worker stays away: it is not in the idle set any more, so nobody asks again,
    /// and the others do the work. Whether there is a thread now.
    pub(crate) fn start(self: &Arc<Self>, cpu: CpuId) -> bool {
        let mut threads = lock(&self.threads);
        if self.is_closing() || threads.has_started.get(cpu.index()) != Some(&false) {
            // It is on its way; what was queued it will see when it gets there.
            return true;
        }
        let domain = Arc::clone(self);
        let builder = Builder::new().name(format!("{}-{}", self.name, cpu.index()));
        let Ok(handle) = builder.spawn(move || domain.host(cpu)) else {
            return false;
        };
        threads.has_started[cpu.index()] = true;
        threads.handles.push(handle);
        true
    }

    /// Starts one worker, with nothing to do.
    pub(crate) fn start_first(self: &Arc<Self>) -> Result<(), Error> {
        let is_there = self
            .idle
            .claim_any(&CpuMask::ALL)
            .is_some_and(|cpu| self.start(cpu));
        is_there.then_some(()).ok_or(Error::ThreadUnavailable)
    }

    fn host(self: Arc<Self>, cpu: CpuId) {
        let worker = &self.workers[cpu.index()];
        let thread = system::this_thread();
        // Other workers stay in the class of whoever made them.
        if self.kernel_class == KernelClass::Idle {
            system::set_class(thread, KernelClass::Idle);
        }
        worker.sleeper.move_in();
        // 0 stands for "no thread"; where threads have no numbers any other will do.
        worker
            .kernel_thread
            .store(thread.unsigned_abs().max(1), Ordering::Release);
        Local::new(Arc::clone(&self), cpu).live();
    }

    /// Ends: running jobs are finished, others dropped, threads joined.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        for stripe in &self.stripes {
            for entry in stripe.close() {
                let (Entry::Run(flow) | Entry::Help(flow)) = entry;
                flow.give_up();
            }
        }
        let handles = std::mem::take(&mut lock(&self.threads).handles);
        for worker in &self.workers {
            worker.sleeper.wake();
        }
        let me = std::thread::current().id();
        for handle in handles {
            // A pool that is dropped by its own job cannot wait for itself.
            if handle.thread().id() != me {
                // Workers catch the panics of jobs.
                let _ = handle.join();
            }
        }
        self.pacer.close();
        self.timers.drop_all();
    }
}
