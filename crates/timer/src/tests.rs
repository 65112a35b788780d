//! Tests of the whole system: comparisons with the reference implementation, and races between
//! threads.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use proptest::prelude::*;
use refrain_testkit::{Rng, scaled};

use crate::callbacks::Notify;
use crate::deadline::NEVER_NS;
use crate::property::{Comparison, Operation, timers_match_reference};
use crate::shard::Shard;
use crate::system::TimerSystem;
use crate::timer_id::{Expired, TimerId};
use refrain_sync::ShortLock;

const MS: u64 = 1_000_000;

/// The notifications: worker and deadline.
#[derive(Default)]
struct Notifications(ShortLock<Vec<(usize, u64)>>);

impl Notify for &Notifications {
    fn earlier(&self, worker: usize, deadline_ns: u64) {
        self.0.lock().push((worker, deadline_ns));
    }
}

fn payloads<P: Clone, N: Notify>(system: &TimerSystem<P, N>, worker: usize, now: u64) -> Vec<P> {
    let fired = RefCell::new(Vec::new());
    system.expire(worker, now, &|_, event: Expired<P>| {
        fired.borrow_mut().push(event.payload);
    });
    fired.into_inner()
}

#[test]
fn fires_in_the_order_of_deadlines_then_additions_and_never_early() {
    let system = TimerSystem::new(1, ());
    for (deadline_ns, payload) in [(7 * MS, 'c'), (MS, 'a'), (7 * MS, 'd'), (MS + 1, 'b')] {
        system.add(0, deadline_ns, payload);
    }
    assert_eq!(payloads(&system, 0, MS - 1), []);
    assert_eq!(payloads(&system, 0, MS), ['a']);
    assert_eq!(system.next_ns(0), MS + 1);
    assert_eq!(payloads(&system, 0, 8 * MS), ['b', 'c', 'd']);
    assert_eq!(system.next_ns(0), NEVER_NS);
}

#[test]
fn ids_are_not_reused_although_slots_are() {
    let system = TimerSystem::new(1, ());
    let first = system.add(0, MS, 1);
    assert_eq!(system.cancel(first), Some(1));
    let second = system.add(0, MS, 2);
    assert_eq!(first.key.slot, second.key.slot);
    assert_eq!(system.cancel(first), None);
    assert_eq!(payloads(&system, 0, MS), [2]);
    assert_eq!(system.cancel(second), None);
}

#[test]
fn a_worker_is_notified_of_earlier_deadlines_only() {
    let notifications = Notifications::default();
    let system = TimerSystem::new(2, &notifications);
    for deadline_ns in [9 * MS, 12 * MS, 9 * MS, 8 * MS] {
        system.add(1, deadline_ns, ());
    }
    system.add(0, MS, ());
    let expected = [(1, 9 * MS), (1, 8 * MS), (0, MS)];
    assert_eq!(*notifications.0.lock(), expected);
}

#[test]
fn timers_added_by_a_sink_fire_at_the_next_call() {
    let system = Arc::new(TimerSystem::new(1, ()));
    system.add(0, MS, ());
    let again = |_: usize, _: Expired<()>| _ = system.add(0, 0, ());
    assert_eq!(system.expire(0, MS, &again), 1);
    assert_eq!(system.expire(0, MS, &again), 1);
    assert_eq!(system.pending(0), 1);
}

#[test]
fn a_panicking_sink_does_not_lose_timers() {
    let system = TimerSystem::new(1, ());
    for payload in 0..10 {
        system.add(0, MS, payload);
    }
    let fired = AtomicUsize::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        system.expire(0, MS, &|_, event: Expired<u32>| {
            fired.fetch_add(1, Ordering::Relaxed);
            assert_ne!(event.payload, 3);
        })
    }));
    assert!(outcome.is_err());
    assert_eq!(fired.load(Ordering::Relaxed), 10);
}

#[test]
fn payloads_of_cancelled_and_dropped_timers_are_freed() {
    let payload = Arc::new(());
    let system = TimerSystem::new(1, ());
    let id = system.add(0, MS, Arc::clone(&payload));
    drop(system.cancel(id));
    assert_eq!(Arc::strong_count(&payload), 1);
    system.add(0, MS, Arc::clone(&payload));
    drop(system);
    assert_eq!(Arc::strong_count(&payload), 1);
}

/// A service that sets a timeout for each request and cancels it soon afterwards must not grow.
#[test]
fn cancelled_timers_do_not_accumulate() {
    let mut shard = Shard::new(0);
    let mut window = std::collections::VecDeque::new();
    for request in 0..200_000u64 {
        // Some far in the future, some within the current tick.
        let delay_ns = [30_000 * MS, 40 * MS, 10][request as usize % 3];
        window.push_back(shard.insert(request + delay_ns, ()));
        if window.len() > 100 {
            let id = window.pop_front().unwrap();
            assert!(shard.cancel(id.key, id.deadline_ns).is_some());
        }
    }
    let (records, reminders) = shard.lengths();
    assert!(records <= 101, "{records}");
    assert!(reminders <= 600, "{reminders}");
}

fn operations() -> impl Strategy<Value = Operation> {
    let near = prop_oneof![0u8..4, 8u8..24, 30u8..64];
    let mantissa = (-3i16..300).prop_map(i16::cast_unsigned);
    (any::<u8>(), any::<u8>(), near, mantissa, any::<u32>()).prop_map(Operation::from_numbers)
}

proptest! {

    #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

    #[test]
    fn any_sequence_of_calls_matches_the_reference(
        operations in proptest::collection::vec(operations(), 0..400)
    ) {
        timers_match_reference(&operations);
    }
}

fn random_operation(random: &mut Rng) -> Operation {
    let bits = random.any();
    let (kind, worker, which) = (bits as u8, (bits >> 8) as u8, random.any() as u32);
    let exponent = match kind % 16 {
        11 | 12 => 12, // Time advances slowly, so that many timers are pending.
        _ => 10 + (bits >> 16) as u8 % 24,
    };
    let mantissa = (bits >> 32) as u16 % 512;
    Operation::from_numbers((kind, worker, exponent, mantissa, which))
}

fn long_run(operations: u64, seed: u64) {
    let mut random = Rng::new(seed);
    let mut comparison = Comparison::default();
    for _ in 0..operations {
        comparison.apply(random_operation(&mut random));
    }
    comparison.finish();
}

#[test]
fn a_random_run_ends_each_timer_exactly_once() {
    long_run(u64::from(scaled(300_000)), 1);
}

/// `cargo test --release -p refrain-timer -- --ignored hundred_million`
#[test]
#[ignore = "takes minutes"]
fn a_hundred_million_random_operations_end_each_timer_exactly_once() {
    long_run(100_000_000, 2);
}

/// The state of a race: a system, the ids that threads compete for, and how often each timer has
/// ended.
struct Race {
    system: TimerSystem<usize>,
    now_ns: AtomicU64,
    ids: ShortLock<Vec<TimerId>>,
    added: AtomicUsize,
    ends: Vec<AtomicU8>,
}

impl Race {
    const WORKERS: usize = 3;

    fn new(timers: usize) -> Race {
        Race {
            system: TimerSystem::new(Race::WORKERS, ()),
            now_ns: AtomicU64::new(0),
            ids: ShortLock::new(Vec::new()),
            added: AtomicUsize::new(0),
            ends: (0..timers).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    fn end(&self, payload: usize) {
        self.ends[payload].fetch_add(1, Ordering::Relaxed);
    }

    fn id(&self, random: &mut Rng) -> Option<TimerId> {
        let ids = self.ids.lock();
        let recent = ids.len().min(100);
        let back = (random.any() as usize).checked_rem(recent)?;
        Some(ids[ids.len() - 1 - back])
    }

    /// Does one operation. Returns `false` if enough timers were added.
    fn step(&self, random: &mut Rng) -> bool {
        let worker = random.any() as usize % Race::WORKERS;
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        let deadline_ns = now_ns + random.any() % (MS / 4);
        let id = self.id(random);
        match random.any() % 8 {
            0..3 => {
                let payload = self.added.fetch_add(1, Ordering::Relaxed);
                if payload >= self.ends.len() {
                    return false;
                }
                let id = self.system.add(worker, deadline_ns, payload);
                self.ids.lock().push(id);
            }
            3..5 => drop(
                id.and_then(|id| self.system.cancel(id))
                    .inspect(|&p| self.end(p)),
            ),
            _ => {
                self.now_ns
                    .fetch_add(random.any() % 10_000, Ordering::Relaxed);
                let sink = |_: usize, event: Expired<usize>| self.end(event.payload);
                self.system.expire(worker, now_ns, &sink);
            }
        }
        true
    }

    fn run(&self, threads: u64) {
        std::thread::scope(|scope| {
            for seed in 0..threads {
                let mut random = Rng::new(seed);
                scope.spawn(move || while self.step(&mut random) {});
            }
        });
        for worker in 0..Race::WORKERS {
            let sink = |_: usize, event: Expired<usize>| self.end(event.payload);
            self.system.expire(worker, u64::MAX, &sink);
        }
        let leaked_records = (0..Race::WORKERS).map(|worker| self.system.leaked_records(worker));
        assert_eq!(leaked_records.sum::<usize>(), 0);
        for (payload, ends) in self.ends.iter().enumerate() {
            assert_eq!(ends.load(Ordering::Relaxed), 1, "timer {payload}");
        }
    }
}

#[test]
fn racing_threads_end_each_timer_exactly_once() {
    Race::new(scaled(50_000) as usize).run(4);
}

/// `cargo test --release -p refrain-timer -- --ignored hundred_million`
#[test]
#[ignore = "takes minutes"]
fn a_hundred_million_racing_operations_end_each_timer_exactly_once() {
    // 3 of 8 operations add a timer.
    for _ in 0..10 {
        Race::new(3_750_000).run(2);
    }
}
