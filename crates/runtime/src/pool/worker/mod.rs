//! A worker: the loop that takes flows and runs their jobs, also on top of a job that gives way.

mod answer;
mod joining;
mod shown;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::badge::Badge;
use super::domain::Domain;
use super::flow::{Core, Entry, Flow, State};
use super::fork::Forks;
use super::job::{Body, JobError, Step, catch};
use super::pacer::Pacer;
use super::signal::{GIVE_WAY, LENT, MEASURE, SLICE_OVER};
use super::{local, system};
use crate::idle::{Habit, Patience, Woken};
use crate::policy::{Grant, Key, Nice, Place, Policy, Stop, View as _};
use crate::sync::lock;
use crate::topology::CpuId;
pub(crate) use shown::Worker;

/// What a worker runs, one per depth.
#[derive(Clone)]
struct Frame {
    flow: Flow,
    key: Key,
    nice: Nice,
    slice_end_ns: u64,
    started_ns: u64,
    /// What others ran on top of it meanwhile.
    nested_ns: u64,
}

impl Frame {
    /// How long its flow ran until now, without what ran on top.
    fn own_ns(&self, now_ns: u64) -> u64 {
        now_ns
            .saturating_sub(self.started_ns)
            .saturating_sub(self.nested_ns)
    }
}

/// The half of a worker that only its own thread has.
pub(crate) struct Local {
    pub(crate) domain: Arc<Domain>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) cpu: CpuId,
    pub(crate) badge: Badge,
    pub(crate) forks: Forks,
    frame: RefCell<Option<Frame>>,
    depth: Cell<u32>,
    /// When it last passed a checkpoint or began a job; kept while gaps are measured.
    passed_ns: Cell<u64>,
    read_ns: Cell<u64>,
    habit: RefCell<Habit>,
    /// A flow that [`Flow::hand_over`] has woken, with its key.
    handed_over: Cell<Option<(Key, Flow)>>,
}

impl Local {
    pub(crate) fn new(domain: Arc<Domain>, cpu: CpuId) -> Local {
        let worker = Arc::clone(&domain.workers[cpu.index()]);
        Local {
            badge: Badge::new(&worker),
            domain,
            worker,
            cpu,
            forks: Forks::default(),
            frame: RefCell::new(None),
            depth: Cell::new(0),
            passed_ns: Cell::new(0),
            read_ns: Cell::new(0),
            habit: RefCell::default(),
            handed_over: Cell::new(None),
        }
    }

    /// The life of a worker: until its domain closes.
    pub(crate) fn live(&self) {
        local::enter(self, || {
            self.read_clock();
            while !self.domain.is_closing() {
                if self.is_asked() {
                    self.worker.signal.clear(GIVE_WAY | SLICE_OVER);
                }
                match self.take(None) {
                    Some(entry) => self.run(entry),
                    None => self.idle(),
                }
            }
            if let Some((_, flow)) = self.handed_over.take() {
                flow.give_up();
            }
        });
    }

    /// The time, kept until the next reading: decisions between two jobs are made with one.
    fn read_clock(&self) -> u64 {
        let now_ns = self.domain.now_ns();
        self.read_ns.set(now_ns);
        now_ns
    }

    /// When this worker last read the clock.
    pub(crate) fn read_ns(&self) -> u64 {
        self.read_ns.get()
    }

    /// The next entry, in the order of the policy; what was handed over does not go through a stripe if it comes first anyway.
    fn take(&self, before: Option<Key>) -> Option<Entry> {
        if let Some((key, flow)) = self.handed_over.take() {
            if before.is_none() && !self.domain.is_preceded(key) {
                return Some(Entry::Run(flow));
            }
            self.queue_here(key, flow);
        }
        let view = self.domain.view_at(self.read_ns.get());
        self.domain.take(self.cpu, before, &view)
    }

    /// Keeps a flow that the calling job has woken with its last act, to be the next; gives it back if there is one already.
    pub(crate) fn hand_over(&self, key: Key, flow: Flow) {
        if let Some((key, flow)) = self.handed_over.replace(Some((key, flow))) {
            self.queue_here(key, flow);
        }
    }

    /// The job goes on, so what it handed over is for others too.
    fn flush_handed_over(&self) {
        if let Some((key, flow)) = self.handed_over.take() {
            self.queue_here(key, flow);
        }
    }

    fn queue_here(&self, key: Key, flow: Flow) {
        let view = self.domain.view_at(self.read_ns.get());
        let place = Place::Queue(view.stripe_of(self.cpu));
        let allowed = flow.entity().allowed;
        self.domain
            .enqueue(key, Entry::Run(flow), place, &allowed, &view);
    }

    /// Whether no flow runs here just now.
    pub(crate) fn is_between_flows(&self) -> bool {
        self.frame.borrow().is_none()
    }

    /// Nothing to do: see `idle.rs` for the steps.
    fn idle(&self) {
        let (domain, sleeper) = (&self.domain, &self.worker.sleeper);
        self.count_cpu_time();
        sleeper.lie_down();
        domain.idle.insert(self.cpu);
        if domain.is_forking() {
            Pacer::attend(domain);
        }
        let view = domain.view_at(self.read_ns.get());
        let found = domain.take(self.cpu, None, &view);
        if found.is_none() && !domain.is_closing() {
            let patience = self.patience();
            if sleeper.sleep(patience, u64::MAX, || domain.now_ns()) == Woken::Parked {
                self.worker.counters.parks.add(1);
            }
            self.habit.borrow_mut().woken(self.read_clock());
        }
        domain.idle.claim(self.cpu);
        sleeper.rise();
        self.read_clock();
        if let Some(entry) = found {
            domain.pass_on();
            self.run(entry);
        }
    }

    /// How long to stay awake: by how often it was woken lately, and not at all where somebody else could use the processor.
    fn patience(&self) -> Patience {
        let (now_ns, spin_ns_max) = (self.read_ns.get(), self.domain.spin_ns);
        if spin_ns_max == 0 {
            return Patience::default();
        }
        let is_welcome = !self.domain.machine.is_overcommitted(now_ns);
        let patience = self.habit.borrow_mut().patience(now_ns, is_welcome);
        Patience {
            spin_ns: patience.spin_ns.min(spin_ns_max),
            light_ns: patience.light_ns.min(spin_ns_max),
        }
    }

    fn count_cpu_time(&self) {
        if self.worker.signal.word() & MEASURE != 0
            && let Some(time_ns) = system::thread_cpu_ns()
        {
            self.worker.counters.cpu_ns.set(time_ns);
        }
    }

    /// Runs what was taken, and shows afterwards again what lies below.
    fn run(&self, entry: Entry) {
        let below = self.frame.take();
        let forks = self.forks.set_aside();
        match entry {
            Entry::Run(flow) => self.run_flow(flow),
            Entry::Help(flow) => self.help(flow),
        }
        self.forks.bring_back(forks);
        match &below {
            Some(frame) => self.worker.show(frame.key, frame.nice, frame.slice_end_ns),
            None => self.worker.show(Key::NONE, Nice::default(), u64::MAX),
        }
        self.frame.replace(below);
    }

    fn begin(&self, flow: Flow, nice: Nice, key: Key, slice_ns: u64) {
        let now_ns = self.read_ns.get();
        let slice_end_ns = now_ns.saturating_add(slice_ns);
        self.worker.show(key, nice, slice_end_ns);
        self.passed_ns.set(now_ns);
        self.frame.replace(Some(Frame {
            flow,
            key,
            nice,
            slice_end_ns,
            started_ns: now_ns,
            nested_ns: 0,
        }));
        if self.domain.has_waiting() {
            Pacer::attend(&self.domain);
        }
    }

    /// The flow's jobs, until it has none, its slice is over or it gives way.
    fn run_flow(&self, flow: Flow) {
        let (domain, counters) = (&self.domain, &self.worker.counters);
        let view = domain.view_at(self.read_ns.get());
        let mut core = lock(&flow.inner.core);
        core.state = State::Running;
        let grant: Grant = domain.policy.run(&mut core.entity, self.cpu, &view);
        domain.ledger.dispatched(&grant);
        let key = domain.policy.key(&core.entity, &view);
        let nice = core.entity.nice;
        let mut next = core.mailbox.pop_front();
        drop(core);
        self.begin(flow, nice, key, grant.slice_ns);
        counters.runs.add(1);
        loop {
            let unfinished = next.take().and_then(|body| self.run_body(body));
            counters.jobs.add(1);
            next = self.after_job(unfinished);
            if next.is_none() {
                break;
            }
        }
    }

    /// One call of a job; gives it back if there is more of it.
    fn run_body(&self, mut body: Body) -> Option<Body> {
        // The drop is caught with the call: it runs code of the job's owner too.
        let ran = catch(move || match body() {
            Step::Again => Some(body),
            Step::Done => None,
        });
        ran.unwrap_or_else(|panic: JobError| {
            if let Some(flow) = self.flow() {
                lock(&flow.inner.core).panic.get_or_insert(panic);
            }
            None
        })
    }

    /// Between two jobs of a flow: the next one, or the end of its turn.
    fn after_job(&self, unfinished: Option<Body>) -> Option<Body> {
        let domain = &self.domain;
        let view = domain.view_at(self.read_clock());
        let frame = self.frame.take()?;
        let mut core = lock(&frame.flow.inner.core);
        if let Some(body) = unfinished {
            core.mailbox.push_front(body);
        }
        let Some(why) = self.why_stop(&frame, &core) else {
            let next = core.mailbox.pop_front();
            drop(core);
            self.passed_ns.set(view.now_ns);
            self.frame.replace(Some(frame));
            self.flush_handed_over();
            return next;
        };
        if self.worker.signal.word() & LENT != 0 {
            self.give_back();
        }
        let own_ns = frame.own_ns(view.now_ns);
        let ran_ns = own_ns.saturating_add(std::mem::take(&mut core.helped_ns));
        self.worker.counters.busy_ns.add(own_ns);
        let charge = domain
            .policy
            .stop(&mut core.entity, self.cpu, ran_ns, why, &view);
        domain.ledger.ran(&charge);
        if why == Stop::Blocked {
            core.state = State::Asleep;
            return None;
        }
        core.state = State::Queued;
        let place = domain.policy.requeue(&mut core.entity, self.cpu, &view);
        let key = domain.policy.key(&core.entity, &view);
        let allowed = core.entity.allowed;
        drop(core);
        domain.enqueue(key, Entry::Run(frame.flow), place, &allowed, &view);
        None
    }

    fn why_stop(&self, frame: &Frame, core: &Core) -> Option<Stop> {
        let now_ns = self.read_ns.get();
        if core.mailbox.is_empty() {
            return Some(Stop::Blocked);
        }
        if self.domain.is_closing() {
            return Some(Stop::Yielded);
        }
        if now_ns >= frame.slice_end_ns {
            return Some(Stop::Expired);
        }
        let signal = &self.worker.signal;
        if signal.word() & (GIVE_WAY | SLICE_OVER) != 0 {
            self.note_answer(signal.answer(GIVE_WAY | SLICE_OVER), now_ns);
            if self.domain.is_preceded(frame.key) {
                return Some(Stop::Preempted);
            }
        }
        None
    }

    /// The flow that runs here, if one does.
    pub(crate) fn flow(&self) -> Option<Flow> {
        self.frame.borrow().as_ref().map(|frame| frame.flow.clone())
    }
}
