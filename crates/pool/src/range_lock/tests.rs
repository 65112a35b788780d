//! Threads under the lock, with seeds.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use super::*;

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// For every place, counts the readers inside, or the writers times a million.
#[test]
fn every_place_has_readers_or_one_writer() {
    const PLACES: u64 = 24;
    for seed in 0..2 {
        let lock = RangeLock::new();
        let places: Vec<AtomicU64> = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        let (inside, inside_max) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (lock, places, inside, inside_max) = (&lock, &places, &inside, &inside_max);
                scope.spawn(move || {
                    let mut numbers = Numbers(seed * 100 + thread);
                    for round in 0..300 {
                        let start = numbers.below(PLACES);
                        let end = (start + numbers.below(6)).min(PLACES);
                        let is_write = numbers.below(2) == 0;
                        let weight = if is_write { 1_000_000 } else { 1 };
                        let guard = match (is_write, numbers.below(8)) {
                            (false, 0) => lock.try_acquire(start..end, Access::Read),
                            (true, 0) => lock.try_acquire(start..end, Access::Write),
                            (false, _) => Some(lock.read(start..end)),
                            (true, _) => Some(lock.write(start..end)),
                        };
                        let Some(guard) = guard else { continue };
                        inside_max.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        let mine = &places[start as usize..end.max(start) as usize];
                        for place in mine {
                            let before = place.fetch_add(weight, SeqCst);
                            let limit = if is_write { 1 } else { 1_000_000 };
                            assert!(before < limit, "seed {seed}: {before} in {start}..{end}");
                        }
                        if round % 8 == 0 {
                            std::thread::yield_now();
                        }
                        for place in mine {
                            place.fetch_sub(weight, SeqCst);
                        }
                        inside.fetch_sub(1, SeqCst);
                        drop(guard);
                    }
                });
            }
        });
        assert!(lock.arrivals.lock().is_empty());
        assert!(inside_max.into_inner() > 1, "nothing ran together");
    }
}

fn await_arrivals(lock: &RangeLock, count: usize) {
    let arrived = || lock.arrivals.lock().len();
    while arrived() < count {
        std::thread::yield_now();
    }
}

#[test]
fn a_waiting_writer_is_not_overtaken() {
    let lock = RangeLock::new();
    let order = std::sync::Mutex::new(Vec::new());
    let note = |name: &'static str| order.lock().unwrap().push(name);
    std::thread::scope(|scope| {
        let first = lock.read(0..10);
        scope.spawn(|| {
            let _range = lock.write(5..20);
            note("writer");
        });
        await_arrivals(&lock, 2);
        scope.spawn(|| {
            let _range = lock.read(8..30);
            note("later reader");
        });
        await_arrivals(&lock, 3);
        // It could share with the holder, but would overtake the writer.
        assert!(lock.try_acquire(6..7, Access::Read).is_none());
        // It does not conflict with either.
        drop(lock.try_acquire(30..40, Access::Write).expect("free"));
        drop(lock.try_acquire(0..5, Access::Read).expect("only readers"));
        note("first reader");
        drop(first);
    });
    let order = order.into_inner().unwrap();
    assert_eq!(order, ["first reader", "writer", "later reader"]);
}

#[test]
fn empty_ranges_conflict_with_none() {
    let lock = RangeLock::new();
    let all = lock.write(0..u64::MAX);
    drop(lock.write(5..5));
    let reversed = Range { start: 9, end: 3 };
    drop(lock.read(reversed.clone()));
    assert!(lock.try_acquire(reversed, Access::Write).is_some());
    assert!(lock.try_acquire(0..1, Access::Read).is_none());
    drop(all);
}

#[test]
fn a_panic_while_a_range_is_held_releases_it() {
    let lock = RangeLock::new();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _range = lock.write(0..10);
        panic!("while held");
    }));
    assert!(result.is_err());
    assert!(lock.try_acquire(0..10, Access::Write).is_some());
    assert_eq!(crate::held_locks::all_held(), 0);
}
