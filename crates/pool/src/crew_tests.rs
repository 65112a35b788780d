use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::ThreadId;

use super::*;
use crate::executor::install;
use crate::pool::checkpoint;

fn drain<E>(crew: &Crew<'_, '_, E>) -> Vec<Option<E>> {
    std::iter::from_fn(|| crew.next().map(Result::ok)).collect()
}

#[test]
fn next_returns_all_events_and_then_none() {
    for threads in [0, 1, 2, 7] {
        crew(threads, |crew| {
            assert_eq!(crew.threads(), threads);
            assert!(crew.next().is_none());
            assert!(crew.try_next().is_none());
            for value in 0..100u64 {
                crew.submit(Lane::Normal, move || value);
            }
            assert_eq!(crew.in_flight(), 100);
            let mut values: Vec<u64> = drain(crew).into_iter().flatten().collect();
            values.sort_unstable();
            assert!(values.into_iter().eq(0..100));
            assert_eq!((crew.in_flight(), crew.queued()), (0, 0));
            assert!(crew.next().is_none());
        });
    }
}

#[test]
fn jobs_borrow_what_outlives_the_crew() {
    let words = vec![
        "repeat".to_owned(),
        "at any".to_owned(),
        "distance".to_owned(),
    ];
    let lengths = AtomicUsize::new(0);
    crew(2, |crew| {
        for word in &words {
            crew.submit(Lane::Normal, || {
                lengths.fetch_add(word.len(), Ordering::Relaxed)
            });
        }
        drain(crew);
    });
    assert_eq!(lengths.into_inner(), 20);
}

/// A job occupies the only worker while the others are queued, so the lanes determine the order.
#[test]
fn urgent_jobs_run_first_and_those_of_a_lane_in_order() {
    let (open_gate, gate) = mpsc::channel::<()>();
    let gate = Arc::new(std::sync::Mutex::new(gate));
    // Another worker, though it may not run them, would hold jobs for moments.
    let pool = Arc::new(Pool::start(Options::with_workers(1)).unwrap());
    let in_crew = |crew: &Crew<'_, '_, _>| {
        let (has_begun, begun) = mpsc::channel::<()>();
        let gate = Arc::clone(&gate);
        crew.submit(Lane::Background, move || {
            has_begun.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            (Lane::Background, 99)
        });
        // Before it runs, nobody can ask it to make room. The lanes are queued in the order of
        // their deadlines, so that a pause of this thread, after which a new deadline is later
        // than one of another lane, changes nothing.
        begun.recv().unwrap();
        for number in 0..5 {
            for lane in [Lane::Urgent, Lane::Normal, Lane::Background] {
                crew.submit(lane, move || (lane, number));
            }
        }
        assert_eq!(crew.queued(), 15);
        assert!(crew.try_next().is_none());
        assert!(crew.next_within(Duration::from_millis(1)).is_none());
        assert_eq!(crew.in_flight(), 16);
        open_gate.send(()).unwrap();
        drain(crew)
    };
    let order = install(&pool, Entity::new(Class::Normal), || crew(1, in_crew));
    let lanes = [Lane::Urgent, Lane::Normal, Lane::Background];
    let expected = lanes
        .into_iter()
        .flat_map(|lane| (0..5).map(move |number| (lane, number)));
    let expected = std::iter::once((Lane::Background, 99)).chain(expected);
    assert_eq!(
        order.into_iter().flatten().collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
}

#[test]
fn without_threads_all_jobs_run_on_the_caller_in_a_fixed_order() {
    let here = std::thread::current().id();
    let order = crew(0, |crew| {
        for number in 0..2 {
            for lane in [Lane::Input, Lane::Background, Lane::Normal, Lane::Urgent] {
                crew.submit(lane, move || (lane, number, std::thread::current().id()));
            }
        }
        let first = crew.try_next().unwrap().ok();
        let mut all = vec![first];
        all.extend(drain(crew));
        all
    });
    let order: Vec<_> = order.into_iter().flatten().collect();
    assert!(order.iter().all(|event| event.2 == here));
    let lanes: Vec<Lane> = order.iter().map(|event| event.0).collect();
    assert_eq!(
        lanes.chunks(2).map(|pair| pair[0]).collect::<Vec<_>>(),
        [Lane::Urgent, Lane::Normal, Lane::Background, Lane::Input]
    );
    assert!(order.chunks(2).all(|pair| (pair[0].1, pair[1].1) == (0, 1)));
}

#[test]
fn a_crew_does_not_wait_for_jobs_whose_results_nobody_takes() {
    let has_begun = AtomicBool::new(false);
    let endless = || {
        loop {
            has_begun.store(true, Ordering::SeqCst);
            checkpoint();
        }
    };
    crew(2, |outer| {
        outer.submit(Lane::Background, || {
            // This thread runs the jobs of a crew inside.
            crew(2, |inner| {
                inner.submit(Lane::Normal, endless);
                drain::<()>(inner);
            });
        });
        while !has_begun.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_panic_is_an_event_and_the_worker_continues() {
    for threads in [0, 1] {
        crew(threads, |crew| {
            crew.submit(Lane::Urgent, || -> u32 { panic!("block {} is odd", 7) });
            let panicked = crew.next().unwrap().unwrap_err();
            assert_eq!(panicked.lane, Lane::Urgent);
            assert_eq!(panicked.message, "block 7 is odd");
            assert!(panicked.to_string().contains("block 7 is odd"));
            crew.submit(Lane::Normal, || std::panic::panic_any(3u8));
            assert!(
                crew.next()
                    .unwrap()
                    .unwrap_err()
                    .message
                    .contains("not a string")
            );
            crew.submit(Lane::Normal, || 5);
            assert_eq!(crew.next(), Some(Ok(5)));
        });
    }
}

struct Counted<'count>(&'count AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_end_of_the_body_drops_queued_jobs_and_joins_running_ones() {
    let (dropped, started, finished) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    crew(2, |crew| {
        for _ in 0..50 {
            let owned = Counted(&dropped);
            crew.submit(Lane::Background, || {
                started.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                finished.fetch_add(1, Ordering::SeqCst);
                drop(owned);
            });
        }
        while started.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    });
    let (started, finished) = (started.into_inner(), finished.into_inner());
    assert_eq!(started, finished, "running jobs are waited for");
    assert!(started < 50, "queued jobs are not run");
    assert_eq!(dropped.into_inner(), 50, "nothing leaks");
}

#[test]
fn a_panicking_body_does_not_hang() {
    let dropped = AtomicUsize::new(0);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        crew(2, |crew| {
            for lane in [Lane::Normal, Lane::Input] {
                let owned = Counted(&dropped);
                crew.submit(lane, || drop(owned));
            }
            panic!("the body gives up");
        })
    }));
    assert!(result.is_err());
    assert_eq!(dropped.into_inner(), 2);
}

/// An input that blocks forever would stop a crew that ran it on compute workers.
#[test]
fn blocking_input_takes_no_compute_worker() {
    let (end_input, input) = mpsc::channel::<()>();
    // The body owns the end of the channel: if it fails, it drops it, which ends the blocked job.
    crew(1, move |crew| {
        crew.submit(Lane::Input, move || input.recv().map_or(0, |()| 1));
        crew.submit(Lane::Input, || 3);
        for _ in 0..10 {
            crew.submit(Lane::Background, || 10);
            assert_eq!(crew.next(), Some(Ok(10)));
        }
        // The thread may start late.
        while crew.queued() > 1 {
            std::thread::yield_now();
        }
        assert_eq!((crew.queued(), crew.in_flight()), (1, 2));
        end_input.send(()).unwrap();
        assert_eq!(crew.next(), Some(Ok(1)));
        assert_eq!(crew.next(), Some(Ok(3)));
    });
}

/// A crew of one thread uses one worker of the process's pool, however many it has, and two crews
/// use two.
#[cfg(not(loom))]
#[test]
fn a_crew_has_no_more_threads_than_it_asked_for() {
    let running = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let work = |limit: usize| {
        crew(limit, |crew| {
            for number in 0..60 {
                let lane = Lane::COMPUTING[number % 3];
                crew.submit(lane, || {
                    let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(1));
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            drain(crew);
        });
    };
    work(1);
    assert_eq!(most.swap(0, Ordering::SeqCst), 1);
    work(5);
    assert!((2..=5).contains(&most.swap(0, Ordering::SeqCst)));
    std::thread::scope(|scope| {
        scope.spawn(|| work(1));
        work(1);
    });
    assert!(most.into_inner() <= 2);
}

#[test]
fn input_stays_on_one_thread_in_order() {
    let seen = crew(3, |crew| {
        for number in 0..20 {
            crew.submit(Lane::Input, move || {
                // Long enough that a second thread, if there were one, would take the next job.
                std::thread::sleep(Duration::from_millis(1));
                (number, std::thread::current().id())
            });
        }
        drain(crew)
    });
    let seen: Vec<(i32, ThreadId)> = seen.into_iter().flatten().collect();
    assert!(seen.iter().map(|event| event.0).eq(0..20));
    assert!(seen.iter().all(|event| event.1 == seen[0].1));
}

#[test]
fn two_workers_run_at_the_same_time() {
    // Each job waits for the other: with one worker this would deadlock.
    let meeting = std::sync::Barrier::new(2);
    crew(2, |crew| {
        for _ in 0..100 {
            crew.submit(Lane::Normal, || meeting.wait().is_leader());
            crew.submit(Lane::Urgent, || meeting.wait().is_leader());
            assert_eq!(drain(crew).len(), 2);
        }
    });
}

#[test]
fn many_tiny_jobs_with_a_bounded_number_in_flight() {
    const JOBS: u64 = 100_000;
    let sum = crew(2, |crew| {
        let mut sum = 0;
        for value in 0..JOBS {
            while crew.in_flight() >= 64 {
                sum += crew.next().unwrap().unwrap();
            }
            crew.submit(Lane::Normal, move || value);
        }
        sum + drain(crew).into_iter().flatten().sum::<u64>()
    });
    assert_eq!(sum, JOBS * (JOBS - 1) / 2);
}

/// Random submissions, takes, panics and early ends, compared with a model of counters: whatever
/// the timing, every job yields exactly one event or is dropped exactly once.
fn stress(seed: u64) {
    let mut random = seed;
    let mut next_random = move |end: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % end
    };
    let dropped = AtomicUsize::new(0);
    let mut events: HashMap<u64, u32> = HashMap::new();
    let mut submitted = 0;
    let mut panics = (0, 0);
    let drain_at_end = next_random(2) == 0;
    crew(next_random(4) as usize, |crew| {
        let mut in_flight = 0;
        for _ in 0..next_random(400) {
            if next_random(3) > 0 {
                let lanes = [Lane::Urgent, Lane::Normal, Lane::Background, Lane::Input];
                let lane = lanes[next_random(4) as usize];
                let (id, spin, panics_itself) = (submitted, next_random(300), next_random(16) == 0);
                let owned = Counted(&dropped);
                crew.submit(lane, move || {
                    let _owned = owned;
                    (0..spin).for_each(|_| std::hint::spin_loop());
                    if panics_itself {
                        std::panic::resume_unwind(Box::new("quietly"));
                    }
                    id
                });
                panics.0 += usize::from(panics_itself);
                submitted += 1;
                in_flight += 1;
            } else {
                let event = match next_random(3) {
                    0 => crew.try_next(),
                    1 => crew.next_within(Duration::from_micros(next_random(50))),
                    _ => crew.next(),
                };
                count(event, &mut events, &mut panics.1, &mut in_flight);
            }
            assert_eq!(crew.in_flight(), in_flight);
            assert!(crew.queued() <= in_flight);
        }
        while drain_at_end && in_flight > 0 {
            let event = crew.next();
            assert!(event.is_some());
            count(event, &mut events, &mut panics.1, &mut in_flight);
        }
    });
    assert_eq!(dropped.into_inner() as u64, submitted);
    assert!(
        events
            .iter()
            .all(|(id, times)| *id < submitted && *times == 1)
    );
    assert!(panics.1 <= panics.0);
    if drain_at_end {
        assert_eq!(events.len() + panics.0, submitted as usize);
        assert_eq!(panics.0, panics.1);
    }
}

fn count(
    event: Option<Result<u64, JobPanicked>>,
    events: &mut HashMap<u64, u32>,
    panics: &mut usize,
    in_flight: &mut usize,
) {
    match event {
        None => return,
        Some(Ok(id)) => *events.entry(id).or_default() += 1,
        Some(Err(panicked)) => {
            assert_eq!(panicked.message, "quietly");
            *panics += 1;
        }
    }
    *in_flight -= 1;
}

#[test]
fn stress_by_seed() {
    (0..400).for_each(stress);
}
