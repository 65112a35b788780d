//! The ticker: a thread that reads the clock on behalf of the workers. It tells them when a slice
//! is over or a fork should be shared, and fires timers.
//!
//! Checkpoints read one word and no clock (reading a clock costs 10 to 35 ns), so another thread
//! has to. The ticker sleeps unless flows are queued behind running ones, a worker joins while
//! another is idle, or a timer is due. Otherwise it wakes every [`TICK`] or [`HEARTBEAT_TICK`]. An
//! operating system's tick does the same for its scheduler.

use std::time::Duration;

use refrain_sync::atomic::Ordering;
use refrain_sync::fence;

use super::state::domain::{Domain, TimerJob};
use super::state::requests::{HEARTBEAT, SLICE_OVER};
use crate::thread::kernel;

/// The time between two looks while flows are queued behind running ones.
const TICK: Duration = Duration::from_micros(500);
/// The time between two looks while an idle worker could take a fork.
const HEARTBEAT_TICK: Duration = Duration::from_micros(100);
/// After this many looks that found nothing it sleeps without a time limit. Waking it costs a
/// system call, so it does not fall asleep between two jobs.
const QUIET_TICKS: u32 = 20;
/// The slice that it requests from the kernel: short enough to run before computing threads.
const SLICE_NS: u64 = 100_000;

enum Found {
    Forks,
    Waiting,
    Nothing,
}

pub(crate) fn run(domain: &Domain) {
    kernel::shorten_slice(SLICE_NS);
    kernel::set_exact_wakeups();
    let mut quiet = 0;
    loop {
        let now_ns = domain.now_ns();
        domain.timers.expire(now_ns, TimerJob::submit);
        let tick = match look(domain) {
            _ if !domain.ticker.is_watching_now() => None,
            Found::Forks => Some(HEARTBEAT_TICK),
            Found::Waiting => Some(TICK),
            Found::Nothing if quiet < QUIET_TICKS => {
                quiet += 1;
                Some(TICK)
            }
            Found::Nothing => stop_watching(domain),
        };
        if tick != Some(TICK) || domain.has_waiting() {
            quiet = 0;
        }
        let timer = domain.timers.next_after(now_ns);
        if !domain
            .ticker
            .sleep([tick, timer].into_iter().flatten().min())
        {
            return;
        }
    }
}

/// Stops watching, unless something has arrived.
fn stop_watching(domain: &Domain) -> Option<Duration> {
    domain.ticker.set_watching(false);
    fence(Ordering::SeqCst);
    if matches!(look(domain), Found::Nothing) {
        return None;
    }
    domain.ticker.set_watching(true);
    Some(TICK)
}

/// Looks at all workers once, and sets their requests.
fn look(domain: &Domain) -> Found {
    let now_ns = domain.now_ns();
    let (has_waiting, has_idle_helper) = (domain.has_waiting(), domain.has_idle_helper());
    let mut found = Found::Nothing;
    for worker in &domain.workers {
        let runs = worker.running().is_some();
        if has_waiting && runs {
            found = Found::Waiting;
            if worker.slice_end_ns.load(Ordering::Relaxed) <= now_ns {
                worker.requests.request(SLICE_OVER, now_ns);
            }
        }
    }
    for worker in &domain.workers {
        if has_idle_helper && worker.is_forking.load(Ordering::Relaxed) {
            found = Found::Forks;
            worker.requests.set(HEARTBEAT);
        }
    }
    found
}
