//! How a worker shares the forks of its job, waits for them, and helps with those of others.

use refrain_policy::Patience;
use refrain_timer::sync::atomic::Ordering;
use refrain_timer::sync::fence;

use super::Local;
use crate::lock::locks_held;
use crate::pool::flow::Flow;
use crate::pool::pacer::Pacer;
use crate::pool::shares::Task;
use crate::pool::signal::{BEAT, GIVE_WAY};

/// A joiner looks so often whether it can go on before it sleeps: some microseconds, about what a sleep and a wake-up take.
const JOIN_SPINS: u32 = 1000;

/// Whether `is_ready` came true within the spins.
fn spin_until(is_ready: impl Fn() -> bool) -> bool {
    (0..JOIN_SPINS).any(|_| {
        std::hint::spin_loop();
        is_ready()
    })
}

impl Local {
    /// Runs forks of a flow that another worker runs, as long as there are any and nobody else goes first.
    pub(super) fn help(&self, flow: Flow) {
        let domain = &self.domain;
        let key = flow.key();
        let nice = flow.inner.core.lock().entity.nice;
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
        let own_ns = frame.own_ns(now_ns);
        self.worker.counters.busy_ns.add(own_ns);
        let mut core = flow.inner.core.lock();
        core.helped_ns = core.helped_ns.saturating_add(own_ns);
        drop(core);
        if !flow.inner.shares.is_empty() {
            domain.call_helper(&flow);
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
    pub(super) fn share_fork(&self) {
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
