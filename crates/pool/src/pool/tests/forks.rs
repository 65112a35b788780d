use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier};

use super::*;

fn sum(numbers: &[u64]) -> u64 {
    if numbers.len() <= 2 {
        return numbers.iter().sum();
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    let (left, right) = join(|| sum(left), || sum(right));
    left + right
}

#[test]
fn joins_return_the_same_sum_on_any_number_of_workers_and_outside_a_pool() {
    let numbers: Vec<u64> = (0..100_000).collect();
    let expected = numbers.iter().sum();
    assert_eq!(sum(&numbers), expected);
    for workers in [1, 2, 4] {
        let pool = pool(workers);
        let flow = normal(&pool);
        for _ in 0..20 {
            assert_eq!(flow.run(|| sum(&numbers)), Ok(expected));
        }
    }
}

#[test]
fn both_halves_run_at_the_same_time() {
    let pool = pool(2);
    let meeting = Barrier::new(2);
    let wait = || {
        // A first half that passes no checkpoint before its end: the join's own checkpoint shares
        // the second half.
        meeting.wait().is_leader()
    };
    // The heartbeat comes while the first half runs, so that half has to pass checkpoints.
    let first = || {
        let met = Arc::new(AtomicBool::new(false));
        let is_met = Arc::clone(&met);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                wait();
                met.store(true, SeqCst);
            });
            eventually(|| {
                checkpoint();
                is_met.load(SeqCst)
            });
        });
    };
    normal(&pool).run(|| join(first, wait)).unwrap();
    assert_eq!(pool.profile().sum().helped, 1);
}

#[test]
fn a_panic_of_either_half_continues_after_both_have_ended() {
    let pool = pool(2);
    let flow = normal(&pool);
    for round in 0..40 {
        let other_ended = AtomicBool::new(false);
        let finish = || {
            for _ in 0..1000 {
                checkpoint();
            }
            other_ended.store(true, SeqCst);
        };
        let fail = || panic!("half {round}");
        let result = match round % 2 {
            0 => flow.run(|| {
                join(finish, fail);
            }),
            _ => flow.run(|| {
                join(fail, finish);
            }),
        };
        assert_eq!(result, Err(JobError::Panicked(format!("half {round}"))));
        if round % 2 == 0 {
            assert!(other_ended.into_inner());
        }
    }
}

#[test]
fn a_waiting_join_runs_no_work_of_other_flows() {
    // One worker helps with the fork. The joiner must not start the endless job of another flow.
    let pool = pool(2);
    let (flow, foreign) = (normal(&pool), normal(&pool));
    let (helping, release) = (AtomicBool::new(false), AtomicBool::new(false));
    let foreign_began = Arc::new(AtomicBool::new(false));
    let began = Arc::clone(&foreign_began);
    let joined = flow.run(|| {
        join(
            || {
                eventually(|| {
                    checkpoint();
                    helping.load(SeqCst)
                });
                // Less urgent than this flow, which has used no time yet: it must not run on top.
                foreign.submit(move || began.store(true, SeqCst));
            },
            || {
                helping.store(true, SeqCst);
                std::thread::sleep(Duration::from_millis(30));
                release.store(true, SeqCst);
                foreign_began.load(SeqCst)
            },
        )
    });
    assert_eq!(joined, Ok(((), false)));
    foreign.run(|| ()).unwrap();
    assert!(foreign_began.load(SeqCst));
}

#[test]
fn more_urgent_work_runs_on_top_of_a_waiting_join() {
    let pool = pool(2);
    let flow = normal(&pool);
    let (helping, ran) = (&AtomicBool::new(false), &Arc::new(AtomicBool::new(false)));
    let runs = Arc::clone(ran);
    let joined = flow.run(|| {
        // Only the joiner may run it.
        let joiner = current_worker().into_iter().collect();
        let other = pool.flow(Entity::new(Class::Iso).with_allowed(joiner));
        join(
            || {
                eventually(|| {
                    checkpoint();
                    helping.load(SeqCst)
                });
            },
            move || {
                helping.store(true, SeqCst);
                std::thread::sleep(Duration::from_millis(5));
                other.submit(move || runs.store(true, SeqCst));
                // This half passes no checkpoint: the sleeping joiner has to be woken for it.
                eventually(|| ran.load(SeqCst));
            },
        )
    });
    assert_eq!(joined, Ok(((), ())));
}

#[test]
fn scopes_run_all_jobs_that_borrow() {
    for workers in [1, 3] {
        let pool = pool(workers);
        let flow = normal(&pool);
        let mut numbers = vec![0u32; 500];
        flow.run(|| {
            scope(|scope| {
                for (index, number) in numbers.iter_mut().enumerate() {
                    scope.spawn(move || *number = index as u32);
                }
            });
        })
        .unwrap();
        assert!(numbers.iter().copied().eq(0..500));
    }
    let mut outside = 0;
    scope(|scope| scope.spawn(|| outside = 1));
    assert_eq!(outside, 1);
}

#[test]
fn a_panic_cancels_its_scope_and_continues() {
    let pool = pool(2);
    let flow = normal(&pool);
    let ran = AtomicU32::new(0);
    let result = flow.run(|| {
        scope(|scope| {
            scope.spawn(|| panic!("first"));
            eventually(|| {
                checkpoint();
                scope.cancellation().is_cancelled()
            });
            for _ in 0..100 {
                scope.spawn(|| {
                    ran.fetch_add(1, SeqCst);
                });
            }
        });
    });
    assert_eq!(result, Err(JobError::Panicked("first".into())));
    assert_eq!(ran.load(SeqCst), 0);
    let body = flow.run(|| scope(|_| -> () { panic!("body") }));
    assert_eq!(body, Err(JobError::Panicked("body".into())));
    let outside = catch_unwind(AssertUnwindSafe(|| {
        scope(|scope| scope.spawn(|| panic!("outside")));
    }));
    assert!(outside.is_err());
}

#[test]
fn a_cancelled_scope_starts_no_more_jobs() {
    let pool = pool(1);
    let ran = AtomicU32::new(0);
    let result = normal(&pool).run(|| {
        scope(|scope| {
            scope.spawn(|| {
                ran.fetch_add(1, SeqCst);
            });
            scope.cancel();
            scope.spawn(|| {
                ran.fetch_add(1, SeqCst);
            });
        });
        5
    });
    assert_eq!(result, Ok(5));
    assert_eq!(
        ran.into_inner(),
        0,
        "one worker, which was busy with the body"
    );
}
