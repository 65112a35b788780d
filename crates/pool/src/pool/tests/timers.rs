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

/// The worker has a timer and computes without checkpoints until it has fired, which only the other
/// worker can bring about.
#[test]
fn an_idle_worker_fires_the_late_timer_of_a_busy_one() {
    let pool = Arc::new(pool(2));
    let flow = urgent(&pool);
    for is_asleep in [false, true] {
        let (inner, target) = (Arc::clone(&pool), flow.clone());
        let fired = Arc::new(AtomicU32::new(0));
        let busy = normal(&pool).spawn(move || {
            if is_asleep {
                std::thread::sleep(Duration::from_millis(5)); // The other one sleeps by now.
            }
            let fires = Arc::clone(&fired);
            inner.after(Duration::from_millis(1), &target, move || {
                fires.fetch_add(1, SeqCst);
            });
            eventually(|| fired.load(SeqCst) == 1);
        });
        assert_eq!(busy.wait(), Ok(()));
    }
}

/// One worker has a timer and passes no checkpoint, the other passes some and never ends its job.
#[test]
fn a_busy_worker_fires_the_late_timer_of_another_at_a_checkpoint() {
    let pool = Arc::new(pool(2));
    let (flow, inner) = (urgent(&pool), Arc::clone(&pool));
    let [has_begun, has_fired] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let (begins, fired) = (Arc::clone(&has_begun), Arc::clone(&has_fired));
    let passing = normal(&pool).spawn(move || {
        begins.store(1, SeqCst);
        eventually(|| {
            checkpoint();
            fired.load(SeqCst) == 1
        });
    });
    let silent = normal(&pool).spawn(move || {
        eventually(|| has_begun.load(SeqCst) == 1);
        let fires = Arc::clone(&has_fired);
        inner.after(Duration::from_millis(1), &flow, move || {
            fires.store(1, SeqCst);
        });
        eventually(|| has_fired.load(SeqCst) == 1);
    });
    assert_eq!((passing.wait(), silent.wait()), (Ok(()), Ok(())));
}

#[test]
fn a_timer_of_a_worker_without_a_thread_starts_it() {
    let pool = pool(3);
    // No other worker may be woken for the flow, however late the timer fires.
    let flow = pool.flow(Entity {
        allowed: [CpuId::new(2)].into_iter().collect(),
        ..Entity::new(Class::Normal)
    });
    let (sender, receiver) = std::sync::mpsc::channel();
    let job = crate::pool::state::domain::TimerJob::new(&flow, move || sender.send(()).unwrap());
    let due_ns = pool.normal.now_ns() + 1_000_000;
    pool.normal.timers.add(2, due_ns, job);
    receiver.recv().unwrap();
    assert_ne!(pool.normal.workers[2].thread(), 0);
    assert_eq!(pool.normal.workers[1].thread(), 0);
}

/// A pending timer alone keeps nobody awake.
#[test]
fn a_pool_that_waits_for_a_far_timer_sleeps() {
    let pool = pool(2);
    let flow = normal(&pool);
    pool.after(Duration::from_secs(3600), &flow, || {});
    flow.run(|| ()).unwrap();
    let sleeps = || {
        let workers = pool.normal.workers.iter();
        let counts = workers.map(|worker| worker.sleeper.wake_counts());
        counts
            .map(|count| count.awake + count.parked + count.by_time)
            .sum::<u64>()
    };
    eventually(|| {
        let before = sleeps();
        std::thread::sleep(Duration::from_millis(20));
        sleeps() == before
    });
}

#[test]
fn a_cancelled_timer_does_not_fire_and_is_freed() {
    let pool = pool(1);
    let flow = normal(&pool);
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let id = pool.after(Duration::from_millis(1), &flow, move || drop(held));
    let was_pending = pool.cancel(id);
    // It ends once in either case.
    eventually(|| Arc::strong_count(&alive) == 1);
    assert!(!pool.cancel(id));
    let held = Arc::clone(&alive);
    let never = pool.after(Duration::from_secs(3600), &flow, move || drop(held));
    assert!(pool.cancel(never));
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
