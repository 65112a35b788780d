//! Models, which loom runs in every interleaving.

use loom::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::callbacks::Notify;
use crate::system::TimerSystem;
use crate::timer_id::{Expired, TimerId};

const NOW_NS: u64 = 10;

/// Counts how often the only timer of a model has ended.
#[derive(Default)]
struct Ends(AtomicUsize);

impl Ends {
    fn cancel(&self, cancelled: Option<()>) {
        self.0
            .fetch_add(usize::from(cancelled.is_some()), Ordering::Relaxed);
    }

    fn expire(&self, system: &TimerSystem<()>, worker: usize) {
        system.expire(worker, NOW_NS, &|_: usize, _: Expired<()>| {
            self.0.fetch_add(1, Ordering::Relaxed);
        });
    }
}

/// Runs `this` and `other` in two threads on a system with one timer. The timer must end exactly
/// once.
fn exactly_one_end(
    workers: usize,
    this: impl Fn(&TimerSystem<()>, TimerId, &Ends) + Sync + Send + 'static,
    other: impl Fn(&TimerSystem<()>, TimerId, &Ends) + Sync + Send + 'static,
) {
    let actions = std::sync::Arc::new((this, other));
    model(move || {
        let system = Arc::new(TimerSystem::new(workers, ()));
        let ends = Arc::new(Ends::default());
        let id = system.add(0, NOW_NS, ());
        let beside = {
            let (system, ends, actions) = (Arc::clone(&system), Arc::clone(&ends), actions.clone());
            thread::spawn(move || (actions.1)(&system, id, &ends))
        };
        (actions.0)(&system, id, &ends);
        beside.join().unwrap();
        (0..workers).for_each(|worker| ends.expire(&system, worker));
        assert_eq!(ends.0.load(Ordering::Relaxed), 1);
        assert_eq!(system.cancel(id), None);
        for worker in 0..workers {
            assert_eq!(system.pending(worker), 0);
            assert_eq!(system.leaked_records(worker), 0);
        }
    });
}

#[test]
fn a_timer_fires_or_is_cancelled_never_both() {
    exactly_one_end(
        1,
        |system, _, ends| ends.expire(system, 0),
        |system, id, ends| ends.cancel(system.cancel(id)),
    );
}

#[test]
fn a_timer_is_cancelled_once_with_or_without_a_transaction() {
    exactly_one_end(
        1,
        |system, id, ends| ends.cancel(system.cancel(id)),
        |system, id, ends| {
            let mut batch = system.transaction();
            batch.cancel(id);
            if let Ok(committed) = batch.commit(|_| Ok::<_, ()>(())) {
                assert_eq!(committed.cancelled, [()]);
                ends.cancel(Some(()));
            }
        },
    );
}

#[test]
fn a_migrating_timer_can_be_cancelled() {
    exactly_one_end(
        2,
        |system, id, ends| ends.cancel(system.cancel(id)),
        |system, id, _| _ = system.migrate(id, 1),
    );
}

#[test]
fn a_timer_that_migrates_and_is_cancelled_can_fire() {
    exactly_one_end(
        2,
        |system, id, ends| {
            system.migrate(id, 1);
            ends.cancel(system.cancel(id));
        },
        |system, _, ends| {
            ends.expire(system, 1);
            ends.expire(system, 0);
        },
    );
}

#[test]
fn two_concurrent_migrations_do_not_lose_the_timer() {
    exactly_one_end(
        3,
        |system, id, _| _ = system.migrate(id, 1),
        |system, id, _| _ = system.migrate(id, 2),
    );
}

/// The caller's state and the timers change together: a thread that sees the new state finds the
/// new timer and not the old one, and vice versa.
#[test]
fn a_transaction_is_one_step_with_the_callers_change() {
    model(|| {
        let system = Arc::new(TimerSystem::new(2, ()));
        let state = Arc::new(AtomicUsize::new(0));
        let old = system.add(0, NOW_NS, 0);
        let changer = {
            let (system, state) = (Arc::clone(&system), Arc::clone(&state));
            thread::spawn(move || {
                let mut batch = system.transaction();
                batch.cancel(old).add(1, NOW_NS, 1);
                let change = |_: &[_]| {
                    state.store(1, Ordering::Relaxed);
                    Ok::<_, ()>(())
                };
                batch.commit(change).is_ok()
            })
        };
        let fired = AtomicUsize::new(9);
        for worker in [1, 0] {
            system.expire(worker, NOW_NS, &|_: usize, event: Expired<usize>| {
                // The firing thread held the lock either after the change, or before it, which
                // aborts the change.
                assert!(event.payload == 0 || state.load(Ordering::Relaxed) == 1);
                assert_eq!(fired.swap(event.payload, Ordering::Relaxed), 9);
            });
        }
        let is_committed = changer.join().unwrap();
        let fired = fired.load(Ordering::Relaxed);
        assert_eq!(fired == 0, !is_committed);
        assert_eq!(state.load(Ordering::Relaxed), usize::from(is_committed));
        assert_eq!(system.pending(1), usize::from(is_committed && fired == 9));
    });
}

struct Bell(thread::Thread);

impl Notify for Bell {
    fn earlier(&self, _worker: usize, _deadline_ns: u64) {
        self.0.unpark();
    }
}

/// A driver with a timer far in the future sleeps, or is about to, when a due timer is added. No
/// time passes in the model, so a driver that is not woken sleeps forever, which loom reports.
#[test]
fn an_earlier_timer_wakes_the_sleeping_driver() {
    model(|| {
        let system = Arc::new(TimerSystem::new(1, Bell(thread::current())));
        system.add(0, 100 * NOW_NS, "far away");
        let adder = {
            let system = Arc::clone(&system);
            thread::spawn(move || system.add(0, NOW_NS, "soon"))
        };
        let fired = AtomicUsize::new(0);
        while fired.load(Ordering::Relaxed) == 0 {
            if system.next_ns(0) > NOW_NS {
                thread::park();
                continue;
            }
            system.expire(0, NOW_NS, &|_: usize, event: Expired<&str>| {
                assert_eq!(event.payload, "soon");
                fired.fetch_add(1, Ordering::Relaxed);
            });
        }
        adder.join().unwrap();
    });
}
