//! Coroutines, alone and in thousands.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::*;
use crate::lock::Lock;

/// Tests that compare counts of the whole process run one at a time, without other tests that
/// create coroutines. So each joins its threads, which return their stacks when they end.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn coroutine<R: 'static>(body: impl FnOnce(&Yielder<'_>) -> R + 'static) -> Coroutine<R> {
    Coroutine::new(StackSize::Medium, body).unwrap()
}

struct CountsDrops(Arc<AtomicUsize>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn turns_alternate_and_the_end_is_an_error_and_no_crash() {
    let _alone = alone();
    let log = Arc::new(Lock::new(Vec::new()));
    let inner = log.clone();
    let turns = coroutine(move |yielder| {
        for turn in 0..3 {
            inner.lock().push(format!("inside {turn}"));
            yielder.suspend().unwrap();
        }
        "value"
    });
    for turn in 0..3 {
        assert_eq!(turns.enter(), Ok(Entered::Suspended));
        log.lock().push(format!("outside {turn}"));
    }
    assert!(!turns.is_finished());
    assert_eq!(turns.enter(), Ok(Entered::Finished("value")));
    assert!(turns.is_finished());
    assert_eq!(turns.enter(), Err(EnterError::Finished));
    assert_eq!(turns.entries(), 4);
    let expected: Vec<_> = (0..3)
        .flat_map(|turn| [format!("inside {turn}"), format!("outside {turn}")])
        .collect();
    assert_eq!(*log.lock(), expected);
}

#[test]
fn panics_reach_whoever_entered() {
    let _alone = alone();
    let drops = Arc::new(AtomicUsize::new(0));
    let held = CountsDrops(drops.clone());
    let failing = coroutine(move |yielder| {
        let _held = held;
        yielder.suspend().unwrap();
        assert_eq!(1, 2, "on purpose");
    });
    assert_eq!(failing.enter(), Ok(Entered::Suspended));
    let payload = catch_unwind(AssertUnwindSafe(|| failing.enter())).unwrap_err();
    let message = payload.downcast_ref::<String>().unwrap();
    assert!(message.contains("on purpose"), "{message}");
    assert_eq!(drops.load(SeqCst), 1);
    assert!(failing.is_finished());
    assert_eq!(failing.enter(), Err(EnterError::Finished));
}

#[test]
fn dropping_unwinds_the_stack() {
    let _alone = alone();
    let drops = Arc::new(AtomicUsize::new(0));
    let make = || {
        let (one, two) = (CountsDrops(drops.clone()), CountsDrops(drops.clone()));
        coroutine(move |yielder| {
            let _one = one;
            // On the stack of a nested call.
            let nested = |two: CountsDrops| {
                let _two = two;
                yielder.suspend().unwrap();
                unreachable!("is never entered again");
            };
            nested(two);
        })
    };
    drop(make());
    assert_eq!(drops.swap(0, SeqCst), 2, "never entered");
    let suspended = make();
    assert_eq!(suspended.enter(), Ok(Entered::Suspended));
    drop(suspended);
    assert_eq!(drops.swap(0, SeqCst), 2, "suspended");
    // Dropped while the one who owns it panics.
    let suspended = make();
    assert_eq!(suspended.enter(), Ok(Entered::Suspended));
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _suspended = suspended;
        panic!("outside");
    }));
    assert!(panicked.is_err());
    assert_eq!(drops.swap(0, SeqCst), 2, "dropped by a panic");
}

#[test]
fn entering_a_running_coroutine_is_an_error() {
    thread_local! {
        static ITSELF: Cell<Option<&'static Coroutine<EnterError>>> = const { Cell::new(None) };
    }
    let _alone = alone();
    let again = |_: &Yielder<'_>| ITSELF.get().unwrap().enter().unwrap_err();
    let recursive: &'static _ = Box::leak(Box::new(coroutine(again)));
    ITSELF.set(Some(recursive));
    let entered = recursive.enter();
    assert_eq!(entered, Ok(Entered::Finished(EnterError::Running)));
}

#[test]
fn coroutines_enter_others() {
    let _alone = alone();
    let sum = coroutine(move |outer| {
        let inner = coroutine(|yielder| {
            (0..5).for_each(|_| yielder.suspend().unwrap());
            5
        });
        let mut turns = 0;
        loop {
            outer.suspend().unwrap();
            turns += 1;
            if let Entered::Finished(value) = inner.enter().unwrap() {
                return turns + value;
            }
        }
    });
    let mut entries = 0;
    let value = loop {
        entries += 1;
        if let Entered::Finished(value) = sum.enter().unwrap() {
            break value;
        }
    };
    assert_eq!((value, entries), (11, 7));
}

#[test]
fn a_held_lock_refuses_a_suspension() {
    let _alone = alone();
    let outside = Lock::new(());
    // A lock of the entering code does not belong to the coroutine.
    let _held_outside = outside.lock();
    let holder = coroutine(|yielder| {
        yielder.suspend().unwrap();
        let lock = Lock::new(());
        let held = lock.lock();
        assert_eq!(yielder.suspend(), Err(HoldsLock));
        drop(held);
        yielder.suspend().unwrap();
    });
    assert_eq!(holder.enter(), Ok(Entered::Suspended));
    assert_eq!(holder.enter(), Ok(Entered::Suspended));
    assert_eq!(holder.enter(), Ok(Entered::Finished(())));
}

/// Uses some stack, and checks it after a suspension.
fn sum_on_stack(yielder: &Yielder<'_>, seed: u64, depth: u64) -> u64 {
    let numbers: [u64; 16] = std::array::from_fn(|at| seed.wrapping_mul(at as u64 + depth));
    if depth.is_multiple_of(2) {
        yielder.suspend().unwrap();
    }
    let below = match depth {
        0 => 0,
        _ => sum_on_stack(yielder, seed, depth - 1),
    };
    let again: [u64; 16] = std::array::from_fn(|at| seed.wrapping_mul(at as u64 + depth));
    assert_eq!(numbers, again);
    below.wrapping_add(
        numbers
            .iter()
            .fold(0, |sum, number| sum.wrapping_add(*number)),
    )
}

/// Thousands of coroutines, entered in an order from a seed.
#[test]
fn thousands_take_turns_in_any_order() {
    let _alone = alone();
    const COROUTINES: u64 = 2_000;
    for seed in 1..3u64 {
        let before = coroutine_statistics();
        let mut expected = 0u64;
        let mut ready: Vec<_> = (0..COROUTINES)
            .map(|number| {
                let depth = (number * seed) % 7;
                let sum = (0..=depth).flat_map(|depth| (0..16).map(move |at| at + depth));
                expected = sum.fold(expected, |sum, k| sum.wrapping_add(number.wrapping_mul(k)));
                coroutine(move |yielder| sum_on_stack(yielder, number, depth))
            })
            .collect();
        let mut random = seed;
        let mut found = 0u64;
        while !ready.is_empty() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let taken = (random >> 33) as usize % ready.len();
            if let Entered::Finished(sum) = ready[taken].enter().unwrap() {
                found = found.wrapping_add(sum);
                ready.swap_remove(taken);
            }
        }
        assert_eq!(found, expected, "seed {seed}");
        let after = coroutine_statistics();
        assert_eq!(after.live, before.live);
        assert_eq!(after.created - before.created, COROUTINES);
        assert!(after.peak >= before.live + COROUTINES - 512, "{after:?}");
        assert!(after.entries - before.entries >= COROUTINES);
    }
}

#[test]
fn stacks_are_used_again_and_given_back() {
    let _alone = alone();
    let small = StackSize::Small;
    let make = |count| -> Vec<_> {
        let one = |_| Coroutine::new(small, |_: &Yielder<'_>| ()).unwrap();
        (0..count).map(one).collect()
    };
    drop(make(1_000));
    let first = coroutine_statistics();
    drop(make(1_000));
    let second = coroutine_statistics();
    assert_eq!(second.stacks, first.stacks, "{second:?}");
    assert_eq!(second.stacks_reused - first.stacks_reused, 1_000);
    // A thread that ends gives its stacks to the others.
    release_idle_stacks();
    let elsewhere = std::thread::spawn(move || {
        let one = |_| Coroutine::new(small, |_: &Yielder<'_>| ()).unwrap();
        drop((0..1_000).map(one).collect::<Vec<_>>());
    });
    elsewhere.join().unwrap();
    let second = coroutine_statistics();
    drop(make(1_000));
    let third = coroutine_statistics();
    assert_eq!(third.stacks, second.stacks, "{third:?}");
    let released = release_idle_stacks();
    assert!(released >= 1_000, "{released}");
    assert_eq!(coroutine_statistics().stacks, third.stacks - released);
}

#[test]
fn a_hundred_thousand_live_coroutines_work_or_are_refused_with_the_limit() {
    let _alone = alone();
    let small = StackSize::Small;
    let mut live = Vec::new();
    let refusal = loop {
        if live.len() == 100_000 {
            break None;
        }
        let number = live.len();
        let made = Coroutine::new(small, move |yielder: &Yielder<'_>| {
            yielder.suspend().unwrap();
            number
        });
        match made {
            Ok(coroutine) => {
                assert_eq!(coroutine.enter(), Ok(Entered::Suspended));
                live.push(coroutine);
            }
            Err(error) => break Some(error),
        }
    };
    let statistics = coroutine_statistics();
    assert!(statistics.live >= live.len() as u64);
    match refusal {
        None => assert!(statistics.stacks >= 100_000),
        Some(CreateError::TooManyStacks { stacks, limit }) => {
            assert_eq!((stacks, limit), (statistics.stacks, statistics.stacks_max));
            assert!(stacks >= limit, "{stacks} of {limit}");
            let text = CreateError::TooManyStacks { stacks, limit }.to_string();
            assert!(text.contains("vm.max_map_count"), "{text}");
        }
        Some(CreateError::Refused { reason, .. }) => panic!("{reason} after {}", live.len()),
    }
    for (number, coroutine) in live.iter().enumerate() {
        assert_eq!(coroutine.enter(), Ok(Entered::Finished(number)));
    }
    drop(live);
    release_idle_stacks();
    assert!(Coroutine::new(small, |_: &Yielder<'_>| ()).is_ok());
}
