//! A worker: the loop that takes flows and runs their jobs, also on top of a job that gives way.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::badge::Badge;
use super::domain::Domain;
use super::flow::{Core, Entry, Flow, State};
use super::fork::Forks;
use super::histogram::Histogram;
use super::job::{Body, JobError, Step, catch};
use super::pacer::Pacer;
use super::shares::Task;
use super::signal::{BEAT, GIVE_WAY, LENT, MEASURE, SLICE_OVER, Signal};
use super::system::KernelClass;
use super::{Pace, local, system};
use crate::idle::{Habit, Patience, Sleeper, Woken};
use crate::lock::locks_held;
use crate::policy::{Grant, Key, Nice, Place, Policy, Stop, View as _};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::{fence, lock};
use crate::topology::CpuId;

/// Jobs that lie on one another's stack frames, at most. Each is more urgent than the one below, so depth takes as many
/// kinds of urgency; the bound is for the stack.
const NESTING_MAX: u32 = 8;

/// A joiner looks so often whether it can go on before it sleeps: some microseconds, about what a sleep and a wake-up take.
const JOIN_SPINS: u32 = 1000;

/// Whether `is_ready` came true within the spins.
fn spin_until(is_ready: impl Fn() -> bool) -> bool {
    (0..JOIN_SPINS).any(|_| {
        std::hint::spin_loop();
        is_ready()
    })
}

/// What a worker has counted. It alone writes, with a load and a store; sums are made by readers.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) jobs: Counter,
    pub(crate) runs: Counter,
    pub(crate) nested: Counter,
    pub(crate) helped: Counter,
    pub(crate) parks: Counter,
    pub(crate) busy_ns: Counter,
    pub(crate) cpu_ns: Counter,
    /// Wake-ups that it sent, and how many of them took a system call.
    pub(crate) wakes: Counter,
    pub(crate) wake_calls: Counter,
    /// Times it waited for a lock, how long, and how often it raised a holder out of the kernel's idle class.
    pub(crate) lock_waits: Counter,
    pub(crate) lock_wait_ns: Counter,
    pub(crate) raised: Counter,
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0
            .store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The half of a worker that others see.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) signal: Signal,
    pub(crate) sleeper: Sleeper,
    running: AtomicU64,
    running_nice: AtomicU32,
    /// When the slice of the running flow ends; `u64::MAX` when nobody needs to tell it.
    pub(crate) slice_end_ns: AtomicU64,
    /// It has begun to join since the last beat.
    pub(crate) is_forking: AtomicBool,
    /// Its thread in the kernel, once it lives.
    pub(crate) kernel_thread: AtomicU32,
    pub(crate) counters: Counters,
    pub(crate) gaps: Histogram,
    pub(crate) responses: Histogram,
}

impl Worker {
    pub(crate) fn new() -> Worker {
        let worker = Worker::default();
        worker.show(Key::NONE, Nice::default(), u64::MAX);
        worker
    }

    pub(crate) fn running(&self) -> Key {
        Key::from_bits(self.running.load(Ordering::Relaxed))
    }

    pub(crate) fn running_nice(&self) -> Nice {
        // Stored as an index, 0 to 39.
        Nice::new(self.running_nice.load(Ordering::Relaxed) as i32 + Nice::MIN.value())
    }

    /// Shows what it runs, and until when.
    fn show(&self, key: Key, nice: Nice, slice_end_ns: u64) {
        self.running.store(key.bits(), Ordering::Relaxed);
        self.running_nice
            .store(nice.index() as u32, Ordering::Relaxed);
        self.slice_end_ns.store(slice_end_ns, Ordering::Relaxed);
    }

    /// Its thread in the kernel; 0 before it lives.
    pub(crate) fn thread(&self) -> system::ThreadId {
        // Stored from a positive number.
        self.kernel_thread.load(Ordering::Acquire) as system::ThreadId
    }

    /// Shows a more urgent key while somebody waits for what it holds.
    pub(crate) fn lend(&self, key: Key) {
        self.running.fetch_min(key.bits(), Ordering::Relaxed);
    }
}

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

    /// Runs forks of a flow that another worker runs, as long as there are any and nobody else goes first.
    fn help(&self, flow: Flow) {
        let domain = &self.domain;
        let key = flow.key();
        let nice = lock(&flow.inner.core).entity.nice;
        self.begin(flow.clone(), nice, key, u64::MAX);
        while let Some(share) = flow.inner.shares.take() {
            self.worker.counters.helped.add(1);
            share.run(domain);
            if self.worker.signal.word() & GIVE_WAY != 0 && domain.is_preceded(key) {
                break;
            }
        }
        let now_ns = self.read_clock();
        let frame = self.frame.take();
        let own_ns = frame.map_or(0, |frame| frame.own_ns(now_ns));
        self.worker.counters.busy_ns.add(own_ns);
        let mut core = lock(&flow.inner.core);
        core.helped_ns = core.helped_ns.saturating_add(own_ns);
        drop(core);
        if !flow.inner.shares.is_empty() {
            domain.call_helper(&flow);
        }
    }

    /// The flow that runs here, if one does.
    pub(crate) fn flow(&self) -> Option<Flow> {
        self.frame.borrow().as_ref().map(|frame| frame.flow.clone())
    }

    /// Nobody waits for this worker any more: it is shown and run again as what it is.
    pub(crate) fn give_back(&self) {
        self.worker.signal.clear(LENT);
        if let Some(frame) = &*self.frame.borrow() {
            self.worker.show(frame.key, frame.nice, frame.slice_end_ns);
        }
        if self.domain.kernel_class() == KernelClass::Idle {
            system::set_class(self.worker.thread(), KernelClass::Idle);
        }
    }

    fn note_answer(&self, asked_ns: Option<u64>, now_ns: u64) {
        if let Some(asked_ns) = asked_ns {
            self.worker.responses.add(now_ns.saturating_sub(asked_ns));
        }
    }

    /// Whether somebody asked this worker for something.
    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.worker.signal.word() != 0
    }

    /// The slow half of a checkpoint: shares forks, lets more urgent flows run first, on top of this one.
    #[cold]
    pub(crate) fn answer(&self) -> Pace {
        let signal = &self.worker.signal;
        let word = signal.word();
        let now_ns = self.read_clock();
        self.flush_handed_over();
        if word & MEASURE != 0 {
            self.worker
                .gaps
                .add(now_ns.saturating_sub(self.passed_ns.replace(now_ns)));
        }
        if word & BEAT != 0 {
            self.share_fork();
        }
        if word & LENT != 0 && locks_held() == 0 {
            self.give_back();
        }
        // Who holds a lock goes on: whoever ran on top could need it, and would wait for ever.
        if word & (GIVE_WAY | SLICE_OVER) == 0 || locks_held() > 0 {
            return Pace::Go;
        }
        self.note_answer(signal.answer(GIVE_WAY | SLICE_OVER), now_ns);
        self.run_more_urgent(now_ns);
        if word & SLICE_OVER != 0 {
            // Once told is enough.
            self.worker.slice_end_ns.store(u64::MAX, Ordering::Relaxed);
            return Pace::GiveWay;
        }
        Pace::Go
    }

    fn run_more_urgent(&self, mut now_ns: u64) {
        let key = self.frame.borrow().as_ref().map(|frame| frame.key);
        let Some(key) = key else {
            return;
        };
        while self.depth.get() < NESTING_MAX {
            let Some(entry) = self.take(Some(key)) else {
                return;
            };
            self.depth.set(self.depth.get() + 1);
            self.worker.counters.nested.add(1);
            self.run(entry);
            self.depth.set(self.depth.get() - 1);
            let end_ns = self.read_clock();
            if let Some(frame) = self.frame.borrow_mut().as_mut() {
                let nested_ns = end_ns.saturating_sub(now_ns);
                frame.nested_ns = frame.nested_ns.saturating_add(nested_ns);
                // Its slice is its own.
                frame.slice_end_ns = frame.slice_end_ns.saturating_add(nested_ns);
                self.worker
                    .slice_end_ns
                    .store(frame.slice_end_ns, Ordering::Relaxed);
            }
            now_ns = end_ns;
            self.passed_ns.set(now_ns);
        }
    }

    /// Lets others have `task` of `flow`, which runs here; calls one if somebody has nothing to do.
    pub(crate) fn share(&self, flow: &Flow, task: Task) {
        match flow.inner.shares.add(task, self.cpu) {
            Some(joiner) => self.domain.nudge(joiner),
            None if self.domain.call_helper(flow) => {}
            // Nobody is idle. Who is so later asks for a beat, which calls again.
            None => self.begin_forking(),
        }
    }

    /// From now on there is something for others here: whoever is idle, or will be, shall have beats sent to this worker.
    pub(crate) fn begin_forking(&self) {
        self.worker.is_forking.store(true, Ordering::Relaxed);
        // One of the two sees the other: this worker who is idle, or who goes idle (`Local::idle`) that this one forks.
        fence(Ordering::SeqCst);
        if self.domain.has_hungry() {
            Pacer::attend(&self.domain);
        }
    }

    /// Waits until `is_done`, and works on the flow's own shares meanwhile, and on nothing else but what is more urgent than the flow.
    pub(crate) fn wait_for(&self, flow: &Flow, is_done: impl Fn() -> bool) {
        let (shares, sleeper) = (&flow.inner.shares, &self.worker.sleeper);
        let must_look = || is_done() || !shares.is_empty() || self.is_asked_to_move();
        while !is_done() {
            if let Some(share) = shares.take() {
                share.run(&self.domain);
            } else if self.is_asked_to_move() {
                self.answer();
            } else if !spin_until(must_look) {
                // As in `idle.rs`, with the joiner's name in the list of the flow instead of the idle set.
                sleeper.lie_down();
                self.domain.hungry.fetch_add(1, Ordering::SeqCst);
                shares.wait_here(self.cpu);
                fence(Ordering::SeqCst);
                if !must_look() {
                    Pacer::attend(&self.domain);
                    // The spins are behind it.
                    sleeper.sleep(Patience::default(), u64::MAX, || 0);
                }
                shares.wait_no_more(self.cpu);
                self.domain.hungry.fetch_sub(1, Ordering::SeqCst);
                sleeper.rise();
            }
        }
    }

    /// Whether somebody asked for what a waiting joiner can do.
    fn is_asked_to_move(&self) -> bool {
        self.worker.signal.word() & (GIVE_WAY | BEAT) != 0 && locks_held() == 0
    }

    /// A beat: the oldest fork of this worker is for everybody.
    fn share_fork(&self) {
        self.worker.signal.clear(BEAT);
        match (self.flow(), self.forks.share_oldest()) {
            (Some(flow), Some(fork)) => self.share(&flow, Task::Fork(fork)),
            // Shared before, when nobody was idle.
            (Some(flow), None) if !flow.inner.shares.is_empty() => {
                self.domain.call_helper(&flow);
            }
            _ => self.worker.is_forking.store(false, Ordering::Relaxed),
        }
    }
}
