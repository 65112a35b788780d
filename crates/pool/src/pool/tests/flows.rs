use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use refrain_policy::{Nice, TenantId};

use super::*;
use crate::thread::kernel;

#[test]
fn jobs_of_a_flow_run_in_order_and_one_at_a_time() {
    let pool = pool(4);
    let flow = normal(&pool);
    let order = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::new(AtomicU32::new(0));
    for number in 0..1000 {
        let (order, inside) = (Arc::clone(&order), Arc::clone(&inside));
        flow.submit(move || {
            assert_eq!(inside.fetch_add(1, SeqCst), 0);
            order.lock().unwrap().push(number);
            assert_eq!(inside.fetch_sub(1, SeqCst), 1);
        });
    }
    flow.run(|| ()).unwrap();
    assert_eq!(*order.lock().unwrap(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn flows_run_at_the_same_time() {
    let pool = pool(2);
    let meeting = Arc::new(std::sync::Barrier::new(2));
    let handles = [0, 1].map(|_| {
        let meeting = Arc::clone(&meeting);
        normal(&pool).spawn(move || meeting.wait().is_leader())
    });
    let leaders = handles.map(|handle| handle.wait().unwrap());
    assert!(leaders[0] != leaders[1]);
}

#[test]
fn a_panic_reaches_its_handle_and_ends_no_worker() {
    let pool = pool(1);
    let flow = normal(&pool);
    let handle = flow.spawn(|| -> u32 { panic!("spawned") });
    flow.submit(|| panic!("submitted {}", 1));
    assert_eq!(flow.run(|| 7), Ok(7));
    assert_eq!(handle.wait(), Err(JobError::Panicked("spawned".into())));
    let ran = flow.run(|| -> () { panic!("run") });
    assert_eq!(ran, Err(JobError::Panicked("run".into())));
}

/// Panics when dropped, as a job's captured value might.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panic_while_a_job_is_dropped_ends_no_worker() {
    let pool = pool(1);
    let flow = normal(&pool);
    let bomb = Bomb;
    flow.submit(move || {
        let _moved_in = &bomb;
    });
    assert_eq!(flow.run(|| 7), Ok(7));
}

#[test]
fn cancelled_jobs_do_not_run_and_their_handles_return_an_error() {
    let pool = pool(1);
    let flow = normal(&pool);
    let gate = Arc::new(AtomicBool::new(false));
    let started = Arc::new(AtomicBool::new(false));
    let (held, begun) = (Arc::clone(&gate), Arc::clone(&started));
    let running = flow.spawn(move || {
        begun.store(true, SeqCst);
        eventually(|| held.load(SeqCst));
    });
    eventually(|| started.load(SeqCst));
    let waiting: Vec<_> = (0..5).map(|number| flow.spawn(move || number)).collect();
    assert_eq!(flow.cancel(), 5);
    gate.store(true, SeqCst);
    for handle in waiting {
        assert_eq!(handle.wait(), Err(JobError::Cancelled));
    }
    assert_eq!(running.wait(), Ok(()));
    assert_eq!(flow.run(|| 1), Ok(1));
}

#[test]
fn a_dropped_pool_finishes_running_jobs_and_drops_the_others() {
    let pool = pool(1);
    let flow = normal(&pool);
    let started = Arc::new(AtomicBool::new(false));
    let begun = Arc::clone(&started);
    let running = flow.spawn(move || {
        begun.store(true, SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        5
    });
    eventually(|| started.load(SeqCst));
    let same = flow.spawn(|| 6);
    let other = normal(&pool).spawn(|| 7);
    drop(pool);
    assert_eq!(running.wait(), Ok(5));
    assert_eq!(same.wait(), Err(JobError::Cancelled));
    assert_eq!(other.wait(), Err(JobError::Cancelled));
    let late = flow.spawn(|| 8);
    assert_eq!(late.wait(), Err(JobError::Cancelled));
    assert_eq!(flow.run(|| 9), Err(JobError::Cancelled));
}

#[test]
fn a_job_may_drop_its_own_pool() {
    let pool = Arc::new(pool(1));
    let flow = normal(&pool);
    let mine = Arc::clone(&pool);
    let handle = flow.spawn(move || {
        eventually(|| Arc::strong_count(&mine) == 1);
        drop(mine);
        3
    });
    drop(pool);
    assert_eq!(handle.wait(), Ok(3));
}

#[test]
fn flows_and_domains_without_handles_are_freed() {
    let pool = pool(2);
    let alive = Arc::new(());
    let flow = normal(&pool);
    for _ in 0..10 {
        let alive = Arc::clone(&alive);
        // Handles are dropped at once, and so is the flow.
        drop(flow.spawn(move || drop(alive)));
    }
    let domain = Arc::downgrade(&pool.normal);
    drop(flow);
    eventually(|| Arc::strong_count(&alive) == 1);
    drop(pool);
    assert!(
        domain.upgrade().is_none(),
        "threads, flows and domain are freed"
    );
}

#[test]
fn a_more_urgent_flow_runs_on_top_at_a_checkpoint() {
    let pool = pool(1);
    let (background, foreground) = (normal(&pool), urgent(&pool));
    let (begun, has_run) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (starts, sees) = (Arc::clone(&begun), Arc::clone(&has_run));
    let below = background.spawn(move || {
        starts.store(true, SeqCst);
        // Ends only if the other job runs on top, on the only worker.
        eventually(|| {
            checkpoint();
            sees.load(SeqCst)
        });
    });
    eventually(|| begun.load(SeqCst));
    let above = foreground.spawn(move || has_run.store(true, SeqCst));
    assert_eq!(above.wait(), Ok(()));
    assert_eq!(below.wait(), Ok(()));
}

#[test]
fn a_less_urgent_flow_does_not_run_on_top() {
    let pool = pool(1);
    let (background, foreground) = (normal(&pool), urgent(&pool));
    let begun = Arc::new(AtomicBool::new(false));
    let starts = Arc::clone(&begun);
    let order = Arc::new(Mutex::new(Vec::new()));
    let first = Arc::clone(&order);
    let above = foreground.spawn(move || {
        starts.store(true, SeqCst);
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(20) {
            checkpoint();
        }
        first.lock().unwrap().push("urgent");
    });
    eventually(|| begun.load(SeqCst));
    let second = Arc::clone(&order);
    let below = background.spawn(move || second.lock().unwrap().push("normal"));
    above.wait().unwrap();
    below.wait().unwrap();
    assert_eq!(*order.lock().unwrap(), ["urgent", "normal"]);
}

#[test]
fn jobs_of_two_busy_flows_alternate() {
    let pool = pool(1);
    let switches = Arc::new(Mutex::new(Vec::new()));
    let handles: Vec<_> = (0..2)
        .flat_map(|name| {
            let flow = normal(&pool);
            let switches = &switches;
            let submit = move |_| {
                let switches = Arc::clone(switches);
                flow.spawn(move || {
                    let start = std::time::Instant::now();
                    while start.elapsed() < Duration::from_micros(100) {}
                    let mut switches = switches.lock().unwrap();
                    if switches.last() != Some(&name) {
                        switches.push(name);
                    }
                })
            };
            (0..400).map(submit).collect::<Vec<_>>()
        })
        .collect();
    handles
        .into_iter()
        .for_each(|handle| handle.wait().unwrap());
    // 40 ms each in slices of 1 ms; a machine under load makes fewer and longer ones.
    let turns = switches.lock().unwrap().len();
    assert!(turns >= 8, "{turns}");
}

#[test]
fn a_flow_whose_slices_end_in_jobs_makes_room_between_them() {
    let pool = pool(1);
    let has_ended = Arc::new(AtomicBool::new(false));
    // More flows than may run on top of one another, each with a next job all the time.
    let jobs: Vec<Arc<AtomicU64>> = (0..20).map(|_| Arc::default()).collect();
    for jobs in &jobs {
        keep_busy(&normal(&pool), jobs, &has_ended);
    }
    eventually(|| jobs.iter().all(|jobs| jobs.load(SeqCst) > 0));
    has_ended.store(true, SeqCst);
    let most = jobs.iter().map(|jobs| jobs.load(SeqCst)).max();
    assert!(most < Some(300), "{jobs:?}");
}

/// Submits a job of a millisecond with checkpoints, which submits the next one before it ends.
fn keep_busy(flow: &Flow, jobs: &Arc<AtomicU64>, has_ended: &Arc<AtomicBool>) {
    let (next, jobs, has_ended) = (flow.clone(), Arc::clone(jobs), Arc::clone(has_ended));
    flow.submit(move || {
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(1) {
            checkpoint();
        }
        jobs.fetch_add(1, SeqCst);
        if !has_ended.load(SeqCst) {
            keep_busy(&next, &jobs, &has_ended);
        }
    });
}

/// Makes a flow that computes in jobs of 50 µs until `done`, and adds up its time in `time_ns`. The
/// time counts, not the jobs: one that the kernel interrupts takes longer, and the policy charges
/// that time.
fn compute(pool: &Pool, entity: Entity, done: &Arc<AtomicBool>, time_ns: &Arc<AtomicU64>) {
    fn submit(flow: Flow, done: Arc<AtomicBool>, time_ns: Arc<AtomicU64>) {
        flow.clone().submit(move || {
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_micros(50) {}
            time_ns.fetch_add(start.elapsed().as_nanos() as u64, SeqCst);
            if !done.load(SeqCst) {
                submit(flow, done, time_ns);
            }
        });
    }
    submit(pool.flow(entity), Arc::clone(done), Arc::clone(time_ns));
}

/// The share of the first of two groups of flows that compete for one worker, over 400 ms of their
/// time.
fn share_of_first(groups: [&[Entity]; 2]) -> f64 {
    let pool = pool(1);
    let done = Arc::new(AtomicBool::new(false));
    let times = [0, 1].map(|_| Arc::new(AtomicU64::new(0)));
    for (group, time_ns) in groups.into_iter().zip(&times) {
        for &entity in group {
            compute(&pool, entity, &done, time_ns);
        }
    }
    let enough = Duration::from_millis(400).as_nanos() as u64;
    eventually(|| times.iter().map(|time| time.load(SeqCst)).sum::<u64>() > enough);
    done.store(true, SeqCst);
    let [first, second] = times.map(|time| time.load(SeqCst) as f64);
    first / (first + second)
}

/// Asserts that the share of the first group is `expected`, within `tolerance`.
///
/// A pause of the whole process counts as time of the flow that ran, and may be longer than the
/// time of all others (the policy compensates for a few slices only). So a measurement outside the
/// tolerance is repeated. A policy with other shares fails each time: the tolerance is less than
/// half of the distance to the share of equal flows. The simulator verifies the exact shares.
fn assert_share(groups: [&[Entity]; 2], expected: f64, tolerance: f64) {
    let mut measured = Vec::new();
    while measured.len() < 10 {
        let share = share_of_first(groups);
        if (share - expected).abs() < tolerance {
            return;
        }
        measured.push(share);
    }
    panic!("{expected} is not among {measured:?}");
}

#[test]
fn flows_share_time_by_their_nice_values() {
    let nice = |nice| Entity::new(Class::Normal).with_nice(Nice::new(nice));
    // The ratio of the offsets is 1.1 to the tenth, 2.59, so the shares are 0.72 and 0.28. The
    // share of equal flows is 0.5.
    assert_share([&[nice(0)], &[nice(10)]], 0.72, 0.06);
}

#[test]
fn tenants_share_equally_whatever_their_number_of_flows() {
    let tenant = |number| Entity::new(Class::Normal).with_tenant(TenantId::new(number));
    // Without tenants it would be the share of one of 21 flows: 0.05.
    assert_share([&[tenant(1)], &[tenant(2); 20]], 0.5, 0.1);
}

#[test]
fn a_confined_flow_runs_only_on_its_workers() {
    let pool = pool(3);
    for index in 0..3 {
        let only = CpuId::new(index);
        let flow = pool.flow(Entity {
            allowed: [only].into_iter().collect(),
            ..Entity::new(Class::Normal)
        });
        for _ in 0..50 {
            assert_eq!(flow.run(current_worker), Ok(Some(only)));
        }
    }
    assert_eq!(current_worker(), None);
}

#[cfg(target_os = "linux")]
#[test]
fn flows_of_the_idle_class_run_on_idle_class_threads() {
    let pool = pool(1);
    let idle = pool.flow(Entity::new(Class::Idle));
    let is_idle = || kernel::is_idle_class(kernel::this_thread());
    assert_eq!(idle.run(is_idle), Ok(true));
    assert_eq!(normal(&pool).run(is_idle), Ok(false));
    // One worker, and a job of the idle class without checkpoints: other flows run nevertheless.
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let endless = idle.spawn(move || eventually(|| stopped.load(SeqCst)));
    assert_eq!(urgent(&pool).run(|| 3), Ok(3));
    stop.store(true, SeqCst);
    assert_eq!(endless.wait(), Ok(()));
}
