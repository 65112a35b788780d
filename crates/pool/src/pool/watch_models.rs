//! Models of the watch (`watch.rs`): whoever adds a timer is seen by the watcher or wakes it.
//!
//! No time passes in a model: a worker that sleeps for a time wakes at once, and one that sleeps
//! without a limit shows a timer that nobody watches.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

use refrain_policy::SpinLimits;
use refrain_policy::topology::CpuId;
use refrain_sync::fence;
use refrain_timer::NEVER_NS;

use super::state::idle_set::IdleSet;
use crate::idle::Sleeper;

const EARLY_NS: u64 = 1;
const LATER_NS: u64 = 2;

/// What the watch uses of a domain of two workers, with the next timer of a busy third one.
struct SmallWatch {
    idle: IdleSet,
    sleepers: [Sleeper; 2],
    watch_ns: AtomicU64,
    next_ns: AtomicU64,
    /// Whether a worker will look at the timer of `LATER_NS`.
    is_seen: AtomicBool,
}

impl SmallWatch {
    fn new(idle: &[usize], next_ns: u64) -> Arc<SmallWatch> {
        let set = IdleSet::full(2);
        let busy = (0..2).filter(|worker| !idle.contains(worker));
        busy.for_each(|worker| assert!(set.claim(CpuId::new(worker))));
        Arc::new(SmallWatch {
            idle: set,
            sleepers: [Sleeper::default(), Sleeper::default()],
            watch_ns: AtomicU64::new(NEVER_NS),
            next_ns: AtomicU64::new(next_ns),
            is_seen: AtomicBool::new(false),
        })
    }

    fn is_watcher(&self, cpu: CpuId) -> bool {
        self.idle.mask().iter().last() == Some(cpu)
    }

    /// As `Domain::have_watched` and `Domain::nudge`.
    fn have_watched(&self, deadline_ns: u64) {
        if deadline_ns < self.watch_ns.load(Ordering::Relaxed)
            && let Some(cpu) = self.idle.mask().iter().last()
        {
            fence(Ordering::SeqCst);
            let sleeper = &self.sleepers[cpu.index()];
            if !sleeper.is_woken() {
                sleeper.wake();
            }
        }
    }

    /// As `Domain::remind`, for a timer of the busy worker.
    fn add_timer(&self, deadline_ns: u64) {
        self.next_ns.store(deadline_ns, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.have_watched(deadline_ns);
    }

    /// As in `WorkerContext::pass_watch`.
    fn pass_watch(&self) {
        self.watch_ns.store(NEVER_NS, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        if next_ns != NEVER_NS {
            self.have_watched(next_ns);
        }
    }

    /// As `WorkerContext::sleep_until`.
    fn sleep_until(&self, cpu: CpuId) -> u64 {
        if !self.is_watcher(cpu) {
            return NEVER_NS;
        }
        loop {
            let until_ns = self.next_ns.load(Ordering::Relaxed);
            self.watch_ns.store(until_ns, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if !self.is_watcher(cpu) {
                self.pass_watch();
                return NEVER_NS;
            }
            if self.next_ns.load(Ordering::Relaxed) >= until_ns {
                return until_ns;
            }
        }
    }

    /// As `WorkerContext::idle`, again and again.
    fn idle_until_seen(&self, worker: usize) {
        let (cpu, sleeper) = (CpuId::new(worker), &self.sleepers[worker]);
        sleeper.bind_to_current_thread();
        while !self.is_seen.load(Ordering::SeqCst) {
            self.watch_ns.store(NEVER_NS, Ordering::Relaxed);
            sleeper.prepare_to_sleep();
            self.idle.insert(cpu);
            let until_ns = self.sleep_until(cpu);
            if until_ns == LATER_NS {
                self.is_seen.store(true, Ordering::SeqCst);
                self.sleepers.iter().for_each(|other| _ = other.wake());
            } else if until_ns != NEVER_NS {
                thread::yield_now();
            } else if !self.is_seen.load(Ordering::SeqCst) {
                sleeper.sleep(SpinLimits::default(), u64::MAX, || 0);
            }
            self.idle.claim(cpu);
            sleeper.cancel_sleep();
        }
    }
}

/// Runs the workers beside `others`. The thread that joins them must not sleep itself.
fn run(small: &Arc<SmallWatch>, workers: &[usize], others: impl FnOnce()) {
    let start = |&worker: &usize| {
        let small = Arc::clone(small);
        thread::spawn(move || small.idle_until_seen(worker))
    };
    let threads: Vec<_> = workers.iter().map(start).collect();
    others();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_watcher_that_falls_asleep_sees_a_timer_or_is_woken() {
    loom::model(|| {
        let small = SmallWatch::new(&[], NEVER_NS);
        run(&small, &[0], || small.add_timer(LATER_NS));
    });
}

#[test]
fn a_watcher_that_leaves_with_work_wakes_the_next_one() {
    loom::model(|| {
        let small = SmallWatch::new(&[1], LATER_NS);
        run(&small, &[0], || {
            assert!(small.idle.claim(CpuId::new(1)));
            small.pass_watch();
        });
    });
}

/// The first takes itself for the watcher until the second has come, and publishes a time that was
/// the second's business: an early timer is cancelled meanwhile, and a later one added.
#[test]
fn two_workers_that_fall_asleep_leave_one_watcher() {
    let mut model = loom::model::Builder::new();
    // There are too many interleavings of three threads with this many steps.
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(|| {
        let small = SmallWatch::new(&[], EARLY_NS);
        run(&small, &[0, 1], || {
            small.next_ns.store(NEVER_NS, Ordering::Relaxed);
            small.add_timer(LATER_NS);
        });
    });
}
