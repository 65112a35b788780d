use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::*;

/// Adds four timers. Returns the fired ones in order, with whether they were due, and the time that
/// adding them took.
fn four_timers() -> (Vec<(u64, bool)>, Duration) {
    let pool = pool(2);
    let flow = normal(&pool);
    let fired = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    for milliseconds in [9, 3, 6, 1] {
        let fired = Arc::clone(&fired);
        pool.after(Duration::from_millis(milliseconds), &flow, move || {
            let is_time = start.elapsed() >= Duration::from_millis(milliseconds);
            fired.lock().unwrap().push((milliseconds, is_time));
        });
    }
    let adding = start.elapsed();
    eventually(|| fired.lock().unwrap().len() == 4);
    let fired = fired.lock().unwrap().clone();
    (fired, adding)
}

#[test]
fn timers_fire_in_order_and_never_early() {
    loop {
        let (fired, adding) = four_timers();
        assert!(fired.iter().all(|&(_, is_time)| is_time), "{fired:?}");
        // If the thread is interrupted while it adds them, the last ones are due later, and the
        // order may differ.
        if adding < Duration::from_millis(1) {
            return assert!(fired.is_sorted(), "{fired:?}");
        }
    }
}

#[test]
fn a_timer_fires_while_the_only_worker_computes() {
    let pool = pool(1);
    let flow = urgent(&pool);
    let fired = Arc::new(AtomicU32::new(0));
    let (fires, sees) = (Arc::clone(&fired), Arc::clone(&fired));
    let computing = normal(&pool).spawn(move || {
        eventually(|| {
            checkpoint();
            sees.load(SeqCst) == 1
        });
    });
    pool.after(Duration::from_millis(2), &flow, move || {
        fires.fetch_add(1, SeqCst);
    });
    assert_eq!(computing.wait(), Ok(()));
}

#[test]
fn a_cancelled_timer_does_not_fire_and_is_freed() {
    let pool = pool(1);
    let flow = normal(&pool);
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let id = pool.after(Duration::from_millis(1), &flow, move || drop(held));
    let was_pending = pool.timers().cancel(id).is_some();
    // It ends once in either case.
    eventually(|| Arc::strong_count(&alive) == 1);
    assert!(pool.timers().cancel(id).is_none());
    let held = Arc::clone(&alive);
    let never = pool.after(Duration::from_secs(3600), &flow, move || drop(held));
    assert!(pool.timers().cancel(never).is_some());
    assert_eq!(Arc::strong_count(&alive), 1, "{was_pending}");
}

#[test]
fn pending_timers_are_freed_with_the_pool() {
    let pool = pool(1);
    let alive = Arc::new(());
    let flow = normal(&pool);
    let held = Arc::clone(&alive);
    // The id is not stored.
    pool.after(Duration::from_secs(3600), &flow, move || drop(held));
    let domain = Arc::downgrade(&pool.normal);
    drop((pool, flow));
    assert_eq!(Arc::strong_count(&alive), 1);
    assert!(domain.upgrade().is_none());
}

#[test]
fn the_change_of_a_transaction_counts_as_a_held_lock() {
    let pool = pool(1);
    let committed = pool
        .timers()
        .transaction()
        .commit(0, |_| Ok::<_, ()>(crate::held_locks::locks_held()));
    assert!(committed.is_ok_and(|committed| committed.value == 1));
    assert_eq!(crate::held_locks::locks_held(), 0);
}
