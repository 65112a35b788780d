//! The one who looks at the clock: a thread that tells workers when a slice is over or a fork should be shared.
//!
//! Checkpoints read one word and no clock (a clock costs 10 to 35 ns), so somebody else has to. This thread sleeps unless flows wait behind
//! running ones, or a worker joins while another is idle; then it wakes every [`TICK`] or [`BEAT_TICK`]. An operating system's tick does the
//! same for a kernel's scheduler.

use std::sync::PoisonError;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::domain::Domain;
use super::signal::{BEAT, SLICE_OVER};
use super::system;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, fence, lock, wait};

/// Between two looks while flows wait for running ones.
const TICK: Duration = Duration::from_micros(500);
/// Between two looks while somebody idle could have a fork.
const BEAT_TICK: Duration = Duration::from_micros(100);
/// So many looks find nothing before it sleeps without end. Waking it costs a system call, so it does not fall asleep between two jobs.
const QUIET_TICKS: u32 = 20;
/// The kernel is asked to plan it with a slice so short that it comes before threads that compute.
const SLICE_NS: u64 = 100_000;

#[derive(Default)]
struct State {
    thread: Option<JoinHandle<()>>,
    is_poked: bool,
    is_closing: bool,
}

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Pacer {
    /// It looks at regular times, and need not be woken.
    attends: AtomicBool,
    state: Mutex<State>,
    poked: Condvar,
}

/// What a look found.
enum Found {
    Forks,
    Waiting,
    Nothing,
}

impl Pacer {
    /// There may be something to watch from now on. One load, unless it slept.
    #[inline]
    pub(crate) fn attend(domain: &Arc<Domain>) {
        // The fence of `stop_attending` and those before the callers' calls order the word against what there is to watch; and a call
        // that is lost is made up for by the next job.
        if !domain.pacer.attends.load(Ordering::Relaxed) {
            domain.pacer.poke(domain);
        }
    }

    #[cold]
    fn poke(&self, domain: &Arc<Domain>) {
        if self.attends.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut state = lock(&self.state);
        state.is_poked = true;
        if state.thread.is_none() && !state.is_closing {
            let host = Arc::clone(domain);
            let builder = Builder::new().name("pacer".to_owned());
            // Without it flows still take turns, job by job.
            state.thread = builder.spawn(move || host.pacer.live(&host)).ok();
        }
        drop(state);
        self.poked.notify_one();
    }

    fn live(&self, domain: &Domain) {
        system::shorten_slice(SLICE_NS);
        system::set_exact_wakeups();
        while self.wait_for_poke() {
            let mut quiet = 0;
            while quiet < QUIET_TICKS {
                let found = look(domain);
                quiet = match found {
                    Found::Nothing => quiet + 1,
                    Found::Forks | Found::Waiting => 0,
                };
                let tick = match found {
                    Found::Forks => BEAT_TICK,
                    Found::Nothing | Found::Waiting => TICK,
                };
                if !self.sleep(tick) {
                    return;
                }
            }
            self.stop_attending(domain);
        }
    }

    /// Sleeps for a tick; false when the domain closes.
    fn sleep(&self, tick: Duration) -> bool {
        let state = lock(&self.state);
        let kept = self
            .poked
            .wait_timeout_while(state, tick, |state| !state.is_closing);
        let (state, _) = kept.unwrap_or_else(PoisonError::into_inner);
        !state.is_closing
    }

    fn stop_attending(&self, domain: &Domain) {
        self.attends.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !matches!(look(domain), Found::Nothing) && !self.attends.swap(true, Ordering::SeqCst) {
            lock(&self.state).is_poked = true;
        }
    }

    /// Sleeps until poked; false when the domain closes.
    fn wait_for_poke(&self) -> bool {
        let mut state = lock(&self.state);
        while !state.is_poked && !state.is_closing {
            state = wait(&self.poked, state);
        }
        state.is_poked = false;
        !state.is_closing
    }

    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closing = true;
        let thread = state.thread.take();
        drop(state);
        self.poked.notify_all();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // It runs nothing foreign, so it does not panic.
            let _ = thread.join();
        }
    }
}

/// Looks at all workers once, and tells them what they should know.
fn look(domain: &Domain) -> Found {
    let now_ns = domain.now_ns();
    let (has_waiting, has_hungry) = (domain.has_waiting(), domain.has_hungry());
    let mut found = Found::Nothing;
    for worker in &domain.workers {
        let runs = worker.running().is_some();
        if has_waiting && runs {
            found = Found::Waiting;
            if worker.slice_end_ns.load(Ordering::Relaxed) <= now_ns {
                worker.signal.ask(SLICE_OVER, now_ns);
            }
        }
    }
    for worker in &domain.workers {
        if has_hungry && worker.is_forking.load(Ordering::Relaxed) {
            found = Found::Forks;
            worker.signal.set(BEAT);
        }
    }
    found
}
