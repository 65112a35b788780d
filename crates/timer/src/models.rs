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

    fn expire(&self, system: &TimerSystem<()>) {
        system.expire(0, NOW_NS, &|_: usize, _: Expired<()>| {
            self.0.fetch_add(1, Ordering::Relaxed);
        });
    }
}

/// Runs `this` and `other` in two threads on a system with one timer. The timer must end exactly
/// once.
fn exactly_one_end(
    this: impl Fn(&TimerSystem<()>, TimerId, &Ends) + Sync + Send + 'static,
    other: impl Fn(&TimerSystem<()>, TimerId, &Ends) + Sync + Send + 'static,
) {
    let actions = std::sync::Arc::new((this, other));
    model(move || {
        let system = Arc::new(TimerSystem::new(1, ()));
        let ends = Arc::new(Ends::default());
        let id = system.add(0, NOW_NS, ());
        let beside = {
            let (system, ends, actions) = (Arc::clone(&system), Arc::clone(&ends), actions.clone());
            thread::spawn(move || (actions.1)(&system, id, &ends))
        };
        (actions.0)(&system, id, &ends);
        beside.join().unwrap();
        ends.expire(&system);
        assert_eq!(ends.0.load(Ordering::Relaxed), 1);
        assert_eq!(system.cancel(id), None);
        assert_eq!(system.pending(0), 0);
        assert_eq!(system.leaked_records(0), 0);
    });
}

#[test]
fn a_timer_fires_or_is_cancelled_never_both() {
    exactly_one_end(
        |system, _, ends| ends.expire(system),
        |system, id, ends| ends.cancel(system.cancel(id)),
    );
}

#[test]
fn a_timer_is_cancelled_once() {
    exactly_one_end(
        |system, id, ends| ends.cancel(system.cancel(id)),
        |system, id, ends| ends.cancel(system.cancel(id)),
    );
}

/// A worker fires its own timers, and an idle one those of a busy worker.
#[test]
fn two_threads_that_fire_the_same_timers_fire_each_once() {
    exactly_one_end(
        |system, _, ends| ends.expire(system),
        |system, _, ends| ends.expire(system),
    );
}

/// The slot of the cancelled timer is used again for one with the same deadline, whose reminder
/// must not be mistaken for the stale one.
#[test]
fn a_reused_slot_fires_once() {
    exactly_one_end(
        |system, id, ends| {
            if system.cancel(id).is_some() {
                system.add(0, NOW_NS, ());
            }
            ends.expire(system);
        },
        |system, _, ends| ends.expire(system),
    );
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
