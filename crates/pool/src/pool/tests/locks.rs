use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::*;
use crate::pool::state::current::with_current;
use crate::thread::class::KernelClass;
use crate::thread::kernel;
use crate::{Lock, OnceValue, Permits};

/// Runs `hold` in a job. The closure that `hold` calls submits an urgent job and passes
/// checkpoints. Returns whether the urgent job ran on top.
fn runs_on_top(hold: impl FnOnce(&dyn Fn()) + Send) -> bool {
    let pool = pool(1);
    let (below, above) = (normal(&pool), urgent(&pool));
    let ran = Arc::new(AtomicBool::new(false));
    let was_on_top = below
        .run(|| {
            let mut was_on_top = false;
            hold(&|| {
                let runs = Arc::clone(&ran);
                above.submit(move || runs.store(true, SeqCst));
                for _ in 0..100 {
                    checkpoint();
                }
            });
            was_on_top |= ran.load(SeqCst);
            was_on_top
        })
        .unwrap();
    above.run(|| ()).unwrap();
    assert!(ran.load(SeqCst));
    was_on_top
}

#[test]
fn nothing_runs_on_top_of_a_job_that_holds_a_lock() {
    assert!(runs_on_top(|body| body()));
    assert!(!runs_on_top(|body| {
        let lock = Lock::new(());
        let _held = lock.lock();
        body();
    }));
}

#[test]
fn a_job_on_top_of_a_holder_waits_neither_for_permits_nor_for_a_value() {
    let pool = pool(1);
    let (below, above) = (normal(&pool), urgent(&pool));
    let shared = Arc::new((Permits::new(3), OnceValue::default()));
    let there = Arc::clone(&shared);
    let seen = below.run(|| {
        let _acquired = shared.0.acquire(3);
        let value = shared.1.get_or_try_init(|| {
            above.submit(move || {
                let _more = there.0.acquire(u64::MAX);
                assert_eq!(there.1.get_or_try_init(|| Ok::<_, ()>(2)), Ok(&2));
            });
            for _ in 0..100 {
                checkpoint();
            }
            Ok::<_, ()>(1)
        });
        value.copied()
    });
    assert_eq!(seen, Ok(Ok(2)), "the first one to compute it stays");
    // All permits are free again.
    drop(shared.0.acquire(3));
}

#[test]
fn a_holder_inherits_the_priority_of_a_waiting_job_until_it_releases_the_lock() {
    let pool = pool(2);
    let (holder, waiter) = (normal(&pool), urgent(&pool));
    let lock = Lock::new(());
    let (held, waits) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let holding = scope.spawn(|| {
            holder.run(|| {
                let own = with_current(|worker| worker.unwrap().status.running());
                let guard = lock.lock();
                held.store(true, SeqCst);
                let running = || with_current(|worker| worker.unwrap().status.running());
                eventually(|| running() < own);
                assert_eq!(running().class(), Some(Class::Iso));
                drop(guard);
                // The waiting job publishes its key before it sets the request. A request that
                // comes after the release is handled at the next checkpoint.
                eventually(|| {
                    checkpoint();
                    running().class() == own.class()
                });
                waits.load(SeqCst)
            })
        });
        eventually(|| held.load(SeqCst));
        waiter
            .run(|| {
                waits.store(true, SeqCst);
                drop(lock.lock());
            })
            .unwrap();
        assert_eq!(holding.join().unwrap(), Ok(true));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_holder_of_the_idle_class_leaves_it_while_a_job_waits() {
    let pool = pool(1);
    let (holder, waiter) = (pool.flow(Entity::new(Class::Idle)), urgent(&pool));
    let lock = Lock::new(());
    let held = AtomicBool::new(false);
    let is_idle = || kernel::is_idle_class(kernel::this_thread());
    let may_raise = || {
        let thread = kernel::this_thread();
        kernel::set_class(thread, KernelClass::Idle)
            && kernel::set_class(thread, KernelClass::Normal)
    };
    if !std::thread::spawn(may_raise).join().unwrap() {
        // The kernel allows it only with CAP_SYS_NICE; without it there is nothing to test.
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            holder
                .run(|| {
                    assert!(is_idle());
                    let guard = lock.lock();
                    held.store(true, SeqCst);
                    eventually(|| !is_idle());
                    drop(guard);
                    assert!(is_idle());
                })
                .unwrap();
        });
        eventually(|| held.load(SeqCst));
        waiter.run(|| drop(lock.lock())).unwrap();
    });
}
