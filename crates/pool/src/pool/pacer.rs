//! The one who looks at the clock: a thread that tells workers when a slice is over or a fork should be shared, and fires timers.
//!
//! Checkpoints read one word and no clock (a clock costs 10 to 35 ns), so somebody else has to. This thread sleeps unless flows wait behind
//! running ones, a worker joins while another is idle, or a timer is due; then it wakes every [`TICK`] or [`BEAT_TICK`]. An operating system's tick does the
//! same for a kernel's scheduler.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use refrain_timer::sync::atomic::{AtomicBool, Ordering};
use refrain_timer::sync::fence;

use super::domain::Domain;
use super::signal::{BEAT, SLICE_OVER};
use super::system;

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
        if !self.attends.swap(true, Ordering::SeqCst) {
            self.ensure_thread(domain);
            self.ring();
        }
    }

    /// Makes the thread if there is none. Without it flows still take turns, job by job; timers do not fire.
    pub(crate) fn ensure_thread(&self, domain: &Arc<Domain>) {
        let mut state = self.lock();
        if state.thread.is_none() && !state.is_closing {
            let host = Arc::clone(domain);
            let builder = Builder::new().name("pacer".to_owned());
            state.thread = builder.spawn(move || host.pacer.live(&host)).ok();
        }
    }

    /// Wakes the thread, or keeps it from falling asleep: there is something new.
    pub(crate) fn ring(&self) {
        self.lock().is_poked = true;
        self.poked.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Plain data, valid at every point.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self, domain: &Domain) {
        system::shorten_slice(SLICE_NS);
        system::set_exact_wakeups();
        let mut quiet = 0;
        loop {
            let now_ns = domain.now_ns();
            domain.timers.fire(now_ns);
            let tick = match look(domain) {
                _ if !self.attends.load(Ordering::SeqCst) => None,
                Found::Forks => Some(BEAT_TICK),
                Found::Waiting => Some(TICK),
                Found::Nothing if quiet < QUIET_TICKS => {
                    quiet += 1;
                    Some(TICK)
                }
                Found::Nothing => self.stop_attending(domain),
            };
            if tick != Some(TICK) || domain.has_waiting() {
                quiet = 0;
            }
            let timer = domain.timers.next_after(now_ns);
            let patience = [tick, timer].into_iter().flatten().min();
            if !self.sleep(patience) {
                return;
            }
        }
    }

    /// Sleeps so long, at most, or until it is poked; false when the domain closes.
    fn sleep(&self, patience: Option<Duration>) -> bool {
        let sleeps = |state: &mut State| !state.is_poked && !state.is_closing;
        let mut state = match patience {
            None => {
                let state = self.poked.wait_while(self.lock(), sleeps);
                state.unwrap_or_else(PoisonError::into_inner)
            }
            Some(patience) => {
                let kept = self.poked.wait_timeout_while(self.lock(), patience, sleeps);
                kept.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.is_poked = false;
        !state.is_closing
    }

    /// Nothing to watch any more, unless something came just now.
    fn stop_attending(&self, domain: &Domain) -> Option<Duration> {
        self.attends.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if matches!(look(domain), Found::Nothing) {
            return None;
        }
        self.attends.store(true, Ordering::SeqCst);
        Some(TICK)
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
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
