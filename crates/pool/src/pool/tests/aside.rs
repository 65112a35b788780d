use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;

use super::*;
use crate::Lock;
use crate::pool::state::current::with_current;

/// A pool with a flow that has no jobs: it could get some at any time.
fn pool_with_another_flow(workers: usize) -> (Pool, Flow) {
    let pool = pool(workers);
    let flow = normal(&pool);
    (pool, flow)
}

#[test]
fn an_urgent_job_runs_while_the_worker_waits_for_a_long_call() {
    let (pool, _other) = pool_with_another_flow(1);
    let (started, ran) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let (begun, seen) = (Arc::clone(&started), Arc::clone(&ran));
    let long = normal(&pool).spawn(move || {
        aside(|| {
            begun.store(true, SeqCst);
            eventually(|| seen.load(SeqCst) == 3);
        });
        current_worker()
    });
    eventually(|| started.load(SeqCst));
    for number in 0..3 {
        let ran = Arc::clone(&ran);
        assert_eq!(
            urgent(&pool).run(move || ran.fetch_add(1, SeqCst)),
            Ok(number)
        );
    }
    assert_eq!(long.wait(), Ok(Some(CpuId::new(0))));
}

#[test]
fn a_call_borrows_returns_and_panics_as_if_made_in_place() {
    let (pool, _other) = pool_with_another_flow(2);
    for _ in 0..50 {
        let handles = [1, 2, 3].map(|number| {
            normal(&pool).spawn(move || {
                let mut list = vec![number];
                let (this, other) = (thread::current().id(), &mut list);
                let is_other = aside(|| {
                    other.push(number + 1);
                    thread::current().id() != this
                });
                (list, is_other)
            })
        });
        for (handle, number) in handles.into_iter().zip(1..) {
            assert_eq!(handle.wait(), Ok((vec![number, number + 1], true)));
        }
    }
    let failed = normal(&pool).spawn(|| aside(|| panic!("on the spare thread")));
    let panic = JobError::Panicked("on the spare thread".into());
    assert_eq!(failed.wait(), Err(panic));
}

#[test]
fn a_call_is_made_in_place_outside_of_a_pool_under_a_lock_and_for_a_single_flow() {
    let here = || thread::current().id();
    assert_eq!(aside(here), here());
    let pool = pool(1);
    let flow = normal(&pool);
    assert_eq!(flow.run(move || aside(here) == here()), Ok(true));
    let background = Entity::new(Class::Normal).with_latency(Latency::Insensitive);
    let background = pool.flow(background);
    assert_eq!(flow.run(move || aside(here) == here()), Ok(true));
    let other = normal(&pool);
    assert_eq!(flow.run(move || aside(here) == here()), Ok(false));
    assert_eq!(background.run(move || aside(here) == here()), Ok(false));
    let is_here = other.spawn(move || {
        let lock = Lock::new(());
        let _held = lock.lock();
        aside(here) == here()
    });
    assert_eq!(is_here.wait(), Ok(true));
}

#[test]
fn calls_on_top_of_one_another_end_in_any_order() {
    let (pool, _other) = pool_with_another_flow(1);
    let meeting = Arc::new(Barrier::new(2));
    let (started, below) = (Arc::new(AtomicBool::new(false)), Arc::clone(&meeting));
    let begun = Arc::clone(&started);
    let lower = normal(&pool).spawn(move || {
        aside(|| {
            begun.store(true, SeqCst);
            below.wait();
        });
        1
    });
    eventually(|| started.load(SeqCst));
    let upper = urgent(&pool).spawn(move || {
        aside(|| meeting.wait());
        2
    });
    assert_eq!((upper.wait(), lower.wait()), (Ok(2), Ok(1)));
}

#[test]
fn two_calls_are_made_at_once_if_a_worker_is_idle() {
    let here = || thread::current().id();
    let (one, other) = beside(here, here);
    assert_eq!(one, other);
    let only = pool(1);
    let same = normal(&only).run(move || beside(here, here));
    assert!(same.is_ok_and(|(one, other)| one == other));
    let pool = pool(2);
    let mut list = vec![1];
    let both = normal(&pool).run(|| {
        let meeting = Barrier::new(2);
        // The other worker may still be about to become idle.
        eventually(|| with_current(|worker| worker.is_some_and(|w| !w.domain.idle.is_empty())));
        beside(
            || {
                meeting.wait();
                list.push(2);
                here()
            },
            || {
                meeting.wait();
                here()
            },
        )
    });
    assert!(both.is_ok_and(|(one, other)| one != other));
    assert_eq!(list, [1, 2]);
    for is_own in [false, true] {
        let failed = normal(&pool).spawn(move || {
            beside(|| assert!(is_own, "work"), || assert!(!is_own, "own"));
        });
        assert!(matches!(failed.wait(), Err(JobError::Panicked(_))));
    }
}

#[test]
fn a_pool_that_is_dropped_waits_for_its_calls() {
    let pool = pool(2);
    let started = Arc::new(AtomicU32::new(0));
    let handles = [1, 2].map(|number| {
        let started = Arc::clone(&started);
        normal(&pool).spawn(move || {
            started.fetch_add(1, SeqCst);
            aside(|| thread::sleep(Duration::from_millis(20)));
            number
        })
    });
    eventually(|| started.load(SeqCst) == 2);
    drop(pool);
    assert_eq!(handles.map(|handle| handle.wait()), [Ok(1), Ok(2)]);
}
