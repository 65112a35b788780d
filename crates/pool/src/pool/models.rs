//! Models: loom runs them in every interleaving that the memory model allows. A lost wake-up shows
//! as a deadlock.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p refrain-pool --lib models`

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use refrain_policy::SpinLimits;
use refrain_policy::topology::{CpuId, CpuMask};
use refrain_sync::fence;

use super::borrowed::with_borrowed_jobs;
use super::job;
use super::state::idle_set::IdleSet;
use super::state::requests::{PREEMPT, Requests};
use super::state::turn_limit::TurnLimit;
use crate::idle::Sleeper;

/// A stripe and its workers, reduced to the steps of the worker's idle loop and of
/// `Domain::enqueue`.
struct SmallDomain {
    /// The number of queued entries, as a stripe publishes it.
    waiting: AtomicUsize,
    taken: AtomicUsize,
    idle: IdleSet,
    sleepers: [Sleeper; 2],
    /// The limit of the group that all entries belong to.
    limit: TurnLimit,
}

impl SmallDomain {
    fn new(workers: usize) -> Arc<SmallDomain> {
        let idle = IdleSet::full(workers);
        (0..workers).for_each(|worker| assert!(idle.claim(CpuId::new(worker))));
        Arc::new(SmallDomain {
            waiting: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            idle,
            sleepers: [Sleeper::default(), Sleeper::default()],
            limit: TurnLimit::new(workers),
        })
    }

    fn take(&self) -> bool {
        // Relaxed: the handshake must make the entry visible, not this operation.
        let take = |waiting: usize| waiting.checked_sub(1);
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// A take as with the lock of a stripe: an entry that the limit holds back stays.
    fn take_within_limit(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0 && self.limit.try_begin() && self.take()
    }

    /// As in `WorkerContext::after_job` and `Domain::pass_on`.
    fn end_turn(&self) {
        if self.limit.end() {
            fence(Ordering::SeqCst);
            if self.waiting.load(Ordering::Relaxed) > 0 {
                self.wake_one();
            }
        }
    }

    fn enqueue(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.wake_one();
    }

    fn wake_one(&self) {
        if let Some(cpu) = self.idle.claim_any(&CpuMask::ALL) {
            self.sleepers[cpu.index()].wake();
        }
    }

    fn work(&self, worker: usize, wanted: usize) {
        let (cpu, sleeper) = (CpuId::new(worker), &self.sleepers[worker]);
        sleeper.bind_to_current_thread();
        while self.taken.load(Ordering::SeqCst) < wanted {
            let mut found = self.take();
            if !found {
                sleeper.prepare_to_sleep();
                self.idle.insert(cpu);
                found = self.take();
                if !found && self.taken.load(Ordering::SeqCst) < wanted {
                    sleeper.sleep(SpinLimits::default(), u64::MAX, || 0);
                }
                self.idle.claim(cpu);
                sleeper.cancel_sleep();
                if found && self.waiting.load(Ordering::Relaxed) > 0 {
                    self.wake_one();
                }
            }
            if found && self.taken.fetch_add(1, Ordering::SeqCst) + 1 == wanted {
                self.sleepers.iter().for_each(|other| _ = other.wake());
            }
        }
    }
}

/// The thread that joins the others must not sleep itself: loom takes an unpark for the end of a
/// join.
fn spawn(work: impl FnOnce() + 'static) -> thread::JoinHandle<()> {
    thread::spawn(work)
}

fn join_all(threads: Vec<thread::JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn no_entry_is_queued_beside_a_sleeping_worker() {
    let mut model = loom::model::Builder::new();
    // Not all interleavings end within minutes.
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(|| {
        let small = SmallDomain::new(1);
        let (worker, waker) = (Arc::clone(&small), Arc::clone(&small));
        let threads = vec![
            spawn(move || worker.work(0, 2)),
            spawn(move || waker.enqueue()),
        ];
        small.enqueue();
        join_all(threads);
    });
}

#[test]
fn two_workers_lose_no_wake_up() {
    let mut model = loom::model::Builder::new();
    // There are too many interleavings of three threads with this many steps. Two preemptions find
    // the known errors.
    model.preemption_bound = Some(2);
    model.check(|| {
        let small = SmallDomain::new(2);
        let threads = [0, 1].map(|worker| {
            let small = Arc::clone(&small);
            spawn(move || small.work(worker, 2))
        });
        small.enqueue();
        small.enqueue();
        join_all(threads.into());
    });
}

/// A worker ends a turn and then does something else; the entry that the limit held back is for the
/// other worker, which falls asleep meanwhile.
#[test]
fn an_entry_behind_a_limit_wakes_a_worker_when_a_turn_ends() {
    loom::model(|| {
        let small = SmallDomain::new(1);
        assert!(small.limit.try_begin());
        small.waiting.store(1, Ordering::Relaxed);
        let ending = Arc::clone(&small);
        let worker = Arc::clone(&small);
        let threads = vec![
            spawn(move || ending.end_turn()),
            spawn(move || {
                let sleeper = &worker.sleepers[0];
                sleeper.bind_to_current_thread();
                while !worker.take_within_limit() {
                    sleeper.prepare_to_sleep();
                    worker.idle.insert(CpuId::new(0));
                    let found = worker.take_within_limit();
                    if !found {
                        sleeper.sleep(SpinLimits::default(), u64::MAX, || 0);
                    }
                    worker.idle.claim(CpuId::new(0));
                    sleeper.cancel_sleep();
                    if found {
                        return;
                    }
                }
            }),
        ];
        join_all(threads);
        assert_eq!(small.waiting.load(Ordering::Relaxed), 0);
    });
}

/// As in `Domain::remind` and the worker's idle loop: a worker that sleeps until its next timer is
/// woken when an earlier one is added, or sees it before it sleeps.
#[test]
fn an_earlier_timer_wakes_a_worker_that_falls_asleep() {
    loom::model(|| {
        let small = SmallDomain::new(1);
        let next_ns = Arc::new(AtomicUsize::new(usize::MAX));
        let worker = {
            let (small, next_ns) = (Arc::clone(&small), Arc::clone(&next_ns));
            spawn(move || {
                let sleeper = &small.sleepers[0];
                sleeper.bind_to_current_thread();
                while next_ns.load(Ordering::Relaxed) == usize::MAX {
                    sleeper.prepare_to_sleep();
                    small.idle.insert(CpuId::new(0));
                    if next_ns.load(Ordering::Relaxed) == usize::MAX {
                        // No time passes in the model: not woken, it would sleep forever.
                        sleeper.sleep(SpinLimits::default(), u64::MAX, || 0);
                    }
                    small.idle.claim(CpuId::new(0));
                    sleeper.cancel_sleep();
                }
            })
        };
        next_ns.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !small.sleepers[0].is_woken() {
            small.sleepers[0].wake();
        }
        worker.join().unwrap();
    });
}

/// A worker that clears a request sees what was queued before it.
#[test]
fn a_worker_that_clears_a_request_sees_what_was_queued() {
    loom::model(|| {
        let requests = Arc::new(Requests::default());
        let queued = Arc::new(AtomicBool::new(false));
        let (requester, queues) = (Arc::clone(&requests), Arc::clone(&queued));
        let requesting = thread::spawn(move || {
            queues.store(true, Ordering::Relaxed);
            requester.set(PREEMPT);
        });
        if requests.bits() != 0 {
            requests.clear(PREEMPT);
            assert!(queued.load(Ordering::Relaxed));
        }
        requesting.join().unwrap();
    });
}

/// As in `WorkerContext::wait_until`: a worker that waits for a call on a spare thread is woken for
/// the end of the call and for requests.
#[test]
fn a_worker_that_waits_for_a_call_is_woken_for_its_end_and_for_requests() {
    loom::model(|| {
        let sleeper = Arc::new(Sleeper::default());
        let requests = Arc::new(Requests::default());
        let is_done = Arc::new(AtomicBool::new(false));
        let worker = {
            let (sleeper, requests) = (Arc::clone(&sleeper), Arc::clone(&requests));
            let is_done = Arc::clone(&is_done);
            spawn(move || wait_for_call(&sleeper, &requests, &is_done))
        };
        requests.set(PREEMPT);
        fence(Ordering::SeqCst);
        if !sleeper.is_woken() {
            sleeper.wake();
        }
        is_done.store(true, Ordering::Release);
        sleeper.wake();
        worker.join().unwrap();
    });
}

/// Waits until the call has ended and the request was handled.
fn wait_for_call(sleeper: &Sleeper, requests: &Requests, is_done: &AtomicBool) {
    sleeper.bind_to_current_thread();
    let mut has_handled = false;
    while !(has_handled && is_done.load(Ordering::Acquire)) {
        if requests.bits() != 0 {
            requests.clear(PREEMPT);
            has_handled = true;
            continue;
        }
        sleeper.prepare_to_sleep();
        fence(Ordering::SeqCst);
        if requests.bits() == 0 && !(has_handled && is_done.load(Ordering::Acquire)) {
            sleeper.sleep(SpinLimits::default(), u64::MAX, || 0);
        }
        sleeper.cancel_sleep();
    }
}

#[test]
fn borrowed_jobs_are_dropped_before_their_borrows_end() {
    loom::model(|| {
        let ran = Arc::new(AtomicUsize::new(0));
        with_borrowed_jobs(|borrowed| {
            let counts = Arc::clone(&ran);
            let job = borrowed.without_lifetime(Box::new(move || {
                counts.fetch_add(1, Ordering::Relaxed);
            }));
            thread::spawn(move || {
                job();
            });
            drop(borrowed.without_lifetime(Box::new(|| ())));
        });
        // Relaxed: the end of the call orders it.
        assert_eq!(ran.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_thread_that_waits_for_a_job_is_woken_at_its_end() {
    for is_dropped in [false, true] {
        loom::model(move || {
            let (body, handle) = job::once(|| 5);
            let worker = thread::spawn(move || {
                if !is_dropped {
                    body();
                }
            });
            let expected = if is_dropped { Err(job::JobError::Cancelled) } else { Ok(5) };
            assert_eq!(handle.wait(), expected);
            worker.join().unwrap();
        });
    }
}
