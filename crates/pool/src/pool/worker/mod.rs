//! A worker: the loop that takes flows and runs their jobs, also on top of a job that gives way.

mod answer;
mod joining;
mod next;
mod shown;
mod warm;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use refrain_policy::topology::CpuId;
use refrain_policy::{Charge, Habit, Key, Nice, Patience, Place, Policy, Stop, View as _};
use refrain_timer::ticks::TickClock;

use super::badge::Badge;
use super::domain::Domain;
use super::flow::{Core, Entry, Flow, State};
use super::fork::Forks;
use super::job::{Body, JobError, Step, catch};
use super::pacer::Pacer;
use super::signal::{GIVE_WAY, LENT, MEASURE, SLICE_OVER};
use super::{local, system};
use crate::idle::Woken;
use next::NextFlow;
pub(crate) use shown::Worker;
use warm::Warm;

/// What a worker runs, one per depth. Written in place, field by field; see `next.rs` for why.
#[derive(Default)]
struct Frame {
    /// None: the worker is between two flows, and the rest tells of the last one.
    flow: Option<Flow>,
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
    frame: RefCell<Frame>,
    depth: Cell<u32>,
    /// When it last passed a checkpoint or began a job; kept while gaps are measured.
    passed_ns: Cell<u64>,
    clock: TickClock,
    habit: RefCell<Habit>,
    /// What [`Flow::hand_over`] has woken.
    pub(crate) next: NextFlow,
    /// Flows that ran here lately and sleep: see [`Warm`].
    warm: Warm,
    /// Time that its flows ran and that is not booked yet: less than [`BOOKED_AT_ONCE_NS`].
    owed: RefCell<Option<Charge>>,
}

/// What a worker runs next.
enum Work {
    /// What was handed over.
    Next,
    Entry(Entry),
}

/// A worker books so much time at once. Jobs of 20 ns would else spend as much again on the accounts, which all workers write; and an
/// account that is wrong by this much for each worker changes no share that could be measured (a slice is a hundred times as long).
const BOOKED_AT_ONCE_NS: u64 = 10_000;

impl Local {
    pub(crate) fn new(domain: Arc<Domain>, cpu: CpuId) -> Local {
        let worker = Arc::clone(&domain.workers[cpu.index()]);
        Local {
            badge: Badge::new(&worker),
            domain,
            worker,
            cpu,
            forks: Forks::default(),
            frame: RefCell::default(),
            depth: Cell::new(0),
            passed_ns: Cell::new(0),
            clock: TickClock::default(),
            habit: RefCell::default(),
            next: NextFlow::default(),
            warm: Warm::default(),
            owed: RefCell::new(None),
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
                if self.is_next_first() {
                    self.run(Work::Next);
                } else if let Some(entry) = self.take(None) {
                    self.run(Work::Entry(entry));
                } else {
                    self.idle();
                }
            }
            self.keep_order();
        });
    }

    /// The time, kept until the next reading: decisions between two jobs are made with one.
    fn read_clock(&self) -> u64 {
        self.clock.now_ns(|| self.domain.now_ns())
    }

    /// When this worker last read the clock.
    pub(crate) fn read_ns(&self) -> u64 {
        self.clock.last_ns()
    }

    /// The next entry, in the order of the policy.
    fn take(&self, before: Option<Key>) -> Option<Entry> {
        self.keep_order();
        let view = self.domain.view_at(self.clock.last_ns());
        self.domain.take(self.cpu, before, &view)
    }

    /// Whether a flow was handed over that comes first anyway: it does not go through a stripe.
    fn is_next_first(&self) -> bool {
        self.next.is_filled() && !self.domain.is_preceded(self.next.key())
    }

    /// What was handed over takes its place among the others: the job that did it goes on, or hands over another one, or somebody else comes
    /// first. Its leave to run is not booked.
    pub(crate) fn keep_order(&self) {
        let Some((flow, body)) = self.next.take() else {
            return;
        };
        let view = self.domain.view_at(self.clock.last_ns());
        let place = Place::Queue(view.stripe_of(self.cpu));
        let mut core = flow.inner.core.lock();
        core.state = State::Queued;
        core.mailbox.push_front(body);
        let allowed = core.entity.allowed;
        drop(core);
        let key = self.next.key();
        self.domain
            .enqueue(key, Entry::Run(flow), place, &allowed, &view);
    }

    /// A handle of `flow` for a queue or a frame.
    pub(crate) fn held(&self, flow: &Flow) -> Flow {
        self.warm.take(flow).unwrap_or_else(|| flow.clone())
    }

    /// Whether no flow runs here just now.
    pub(crate) fn is_between_flows(&self) -> bool {
        self.frame.borrow().flow.is_none()
    }

    /// Nothing to do: see `idle.rs` for the steps.
    fn idle(&self) {
        let (domain, sleeper) = (&self.domain, &self.worker.sleeper);
        self.count_cpu_time();
        self.book_all();
        self.warm.let_go();
        sleeper.lie_down();
        domain.idle.insert(self.cpu);
        if domain.is_forking() {
            Pacer::attend(domain);
        }
        let view = domain.view_at(self.clock.last_ns());
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
            self.run(Work::Entry(entry));
        }
    }

    /// How long to stay awake: by how often it was woken lately, and not at all where somebody else could use the processor.
    fn patience(&self) -> Patience {
        let (now_ns, spin_ns_max) = (self.clock.last_ns(), self.domain.spin_ns);
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
    fn run(&self, work: Work) {
        // Apart, because to set aside what is not there costs as much as to set aside what is.
        if self.is_between_flows() {
            self.run_alone(work);
            return self.worker.show(Key::NONE, Nice::default(), u64::MAX);
        }
        let below = self.frame.take();
        let forks = self.forks.set_aside();
        self.run_alone(work);
        self.forks.bring_back(forks);
        self.worker.show(below.key, below.nice, below.slice_end_ns);
        self.frame.replace(below);
    }

    fn run_alone(&self, work: Work) {
        match work {
            Work::Next => self.run_next(),
            Work::Entry(Entry::Run(flow)) => self.run_flow(flow),
            Work::Entry(Entry::Help(flow)) => self.help(flow),
        }
    }

    fn begin(&self, flow: Flow, nice: Nice, key: Key, slice_ns: u64) {
        let now_ns = self.clock.last_ns();
        let slice_end_ns = now_ns.saturating_add(slice_ns);
        self.worker.show(key, nice, slice_end_ns);
        self.passed_ns.set(now_ns);
        let mut frame = self.frame.borrow_mut();
        frame.flow = Some(flow);
        frame.key = key;
        frame.nice = nice;
        frame.slice_end_ns = slice_end_ns;
        frame.started_ns = now_ns;
        frame.nested_ns = 0;
        drop(frame);
        if self.domain.has_waiting() {
            Pacer::attend(&self.domain);
        }
    }

    /// Runs a flow that was queued.
    fn run_flow(&self, flow: Flow) {
        let domain = &self.domain;
        let view = domain.view_at(self.clock.last_ns());
        let mut core = flow.inner.core.lock();
        core.state = State::Running;
        let grant = domain.policy.run(&mut core.entity, self.cpu, &view);
        let key = domain.policy.key(&core.entity, &view);
        let nice = core.entity.nice;
        let first = core.mailbox.pop_front();
        drop(core);
        domain.ledger.dispatched(&grant);
        self.begin(flow, nice, key, grant.slice_ns);
        self.run_jobs(first);
    }

    /// Runs the flow that was handed over: the policy has been asked, and nothing of it is locked.
    fn run_next(&self) {
        let Some((flow, body)) = self.next.take() else {
            return;
        };
        let grant = self.next.grant();
        self.domain.ledger.dispatched(&grant);
        self.begin(flow, self.next.nice(), self.next.key(), grant.slice_ns);
        self.run_jobs(Some(body));
    }

    /// The jobs of the flow that runs, until it has none, its slice is over or it gives way.
    fn run_jobs(&self, first: Option<Body>) {
        let counters = &self.worker.counters;
        counters.runs.add(1);
        let mut next = first;
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
                flow.inner.core.lock().panic.get_or_insert(panic);
            }
            None
        })
    }

    /// Between two jobs of a flow: the next one, or the end of its turn.
    fn after_job(&self, unfinished: Option<Body>) -> Option<Body> {
        let domain = &self.domain;
        let view = domain.view_at(self.read_clock());
        let flow = self.frame.borrow_mut().flow.take()?;
        let mut core = flow.inner.core.lock();
        if let Some(body) = unfinished {
            core.mailbox.push_front(body);
        }
        let Some(why) = self.why_stop(&core) else {
            let next = core.mailbox.pop_front();
            drop(core);
            self.passed_ns.set(view.now_ns);
            self.frame.borrow_mut().flow = Some(flow);
            self.keep_order();
            return next;
        };
        if self.worker.signal.word() & LENT != 0 {
            self.give_back();
        }
        let own_ns = self.frame.borrow().own_ns(view.now_ns);
        let ran_ns = own_ns.saturating_add(std::mem::take(&mut core.helped_ns));
        self.worker.counters.busy_ns.add(own_ns);
        let charge = domain
            .policy
            .stop(&mut core.entity, self.cpu, ran_ns, why, &view);
        self.book(&charge);
        if why == Stop::Blocked {
            core.state = State::Asleep;
            drop(core);
            self.warm.keep(flow);
            return None;
        }
        core.state = State::Queued;
        let place = domain.policy.requeue(&mut core.entity, self.cpu, &view);
        let key = domain.policy.key(&core.entity, &view);
        let allowed = core.entity.allowed;
        drop(core);
        domain.enqueue(key, Entry::Run(flow), place, &allowed, &view);
        None
    }

    /// Books what a flow ran, together with what is owed for those before.
    fn book(&self, charge: &Charge) {
        let mut owed = self.owed.borrow_mut();
        // In place, field by field: moved as a whole it would be read as a vector just after it was written in bytes, and wait (8 ns).
        let is_joined = owed.as_mut().is_some_and(|owed| owed.join(charge));
        if is_joined
            && owed
                .as_ref()
                .is_some_and(|owed| owed.ran_ns < BOOKED_AT_ONCE_NS)
        {
            return;
        }
        if let Some(owed) = owed.take() {
            self.domain.ledger.ran(&owed);
        }
        if !is_joined {
            *owed = Some(*charge);
        }
    }

    /// Nothing is owed while nothing runs.
    fn book_all(&self) {
        if let Some(owed) = self.owed.take() {
            self.domain.ledger.ran(&owed);
        }
    }

    fn why_stop(&self, core: &Core) -> Option<Stop> {
        let now_ns = self.clock.last_ns();
        if core.mailbox.is_empty() {
            return Some(Stop::Blocked);
        }
        if self.domain.is_closing() {
            return Some(Stop::Yielded);
        }
        let frame = self.frame.borrow();
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
        self.frame.borrow().flow.clone()
    }
}
