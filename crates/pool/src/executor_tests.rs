#![allow(
    clippy::unwrap_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]

use std::sync::mpsc;
use std::thread::Builder;

use super::*;
use crate::pool::Options;
use crate::thread::kernel;
use crate::{Lane, crew};

fn pool() -> Arc<Pool> {
    Arc::new(Pool::start(Options::with_workers(1)).unwrap())
}

/// The names and classes of the threads that do a crew's work: coordinator, reader, compute
/// worker.
fn crew_threads() -> Vec<(String, bool)> {
    // Input jobs are coroutines, and some tests count all of them.
    let describe = || {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default().to_owned();
        (name, kernel::is_idle_class(kernel::this_thread()))
    };
    crew(1, |crew| {
        let mut threads = vec![describe()];
        for lane in [Lane::Input, Lane::Normal] {
            crew.submit(lane, describe);
            threads.push(crew.next().unwrap().unwrap());
        }
        threads
    })
}

#[test]
fn a_crew_uses_the_installed_pool_and_afterwards_its_own() {
    let pool = pool();
    let thread = || std::thread::current().id();
    let worker = pool.flow(Entity::new(Class::Normal)).run(thread).unwrap();
    let run_in_crew = || {
        crew(2, |crew| {
            assert_eq!(
                crew.threads(),
                if current_executor().is_some() { 1 } else { 2 }
            );
            crew.submit(Lane::Normal, thread);
            crew.next().unwrap().unwrap()
        })
    };
    for class in [Class::Normal, Class::Iso] {
        assert_eq!(install(&pool, Entity::new(class), run_in_crew), worker);
        assert_ne!(run_in_crew(), worker);
    }
}

struct Named;

impl ExternalThreads for Named {
    fn count(&self) -> usize {
        3
    }
    fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
        Builder::new().name("foreign".into()).spawn(job).unwrap();
    }
}

#[test]
fn a_crew_computes_on_the_installed_threads() {
    let threads: Arc<dyn ExternalThreads> = Arc::new(Named);
    let names: Vec<String> = install_on(&threads, crew_threads)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names[1..], ["input", "foreign"]);
    let sum = |numbers: u64| {
        crew(8, |crew| {
            assert_eq!(crew.threads(), 3);
            (0..numbers).for_each(|number| crew.submit(Lane::Normal, move || number));
            std::iter::from_fn(|| crew.next())
                .map(Result::unwrap)
                .sum::<u64>()
        })
    };
    assert_eq!(install_on(&threads, || sum(1000)), 999 * 500);
    assert!(current_executor().is_none());
}

#[test]
fn the_end_of_a_crew_drops_what_other_threads_have_not_started() {
    struct OneByOne(mpsc::Sender<Box<dyn FnOnce() + Send>>);
    impl ExternalThreads for OneByOne {
        fn count(&self) -> usize {
            1
        }
        fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
            self.0.send(job).unwrap();
        }
    }
    let (jobs, queued) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let (open_gate, gate) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        gate.recv().unwrap();
        queued.into_iter().for_each(|job| job());
    });
    let threads: Arc<dyn ExternalThreads> = Arc::new(OneByOne(jobs));
    let dropped = Arc::new(());
    let started = std::sync::atomic::AtomicUsize::new(0);
    install_on(&threads, || {
        crew(1, |crew| {
            for _ in 0..5 {
                let held = Arc::clone(&dropped);
                crew.submit(Lane::Normal, || {
                    started.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    drop(held);
                });
            }
            // After the body: the crew closes, and then waits for the thread.
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                open_gate.send(()).unwrap();
            });
        });
    });
    assert_eq!(started.into_inner(), 0);
    assert_eq!(Arc::strong_count(&dropped), 1);
    drop(threads);
    thread.join().unwrap();
}

#[test]
fn a_panic_restores_the_previous_executor() {
    let pool = pool();
    for class in [Class::Normal, Class::Idle] {
        let work = || install(&pool, Entity::new(class), || panic!("in the work"));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"in the work"));
        assert!(current_executor().is_none());
    }
}

#[test]
fn install_has_no_effect_in_a_job_of_the_pool() {
    let pool = pool();
    for class in [Class::Normal, Class::Idle] {
        let flow = pool.flow(Entity::new(class));
        let inner = Arc::clone(&pool);
        let job = move || install(&inner, Entity::new(class), crew_threads);
        assert_eq!(flow.spawn(job).wait().unwrap().len(), 3);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn in_the_background_all_threads_are_of_the_idle_class() {
    let is_idle = |threads: Vec<(String, bool)>| threads.iter().all(|thread| thread.1);
    assert!(is_idle(in_background(crew_threads)));
    let pool = pool();
    assert!(is_idle(install(
        &pool,
        Entity::new(Class::Idle),
        crew_threads
    )));
    assert!(is_idle(in_background(|| install(
        &pool,
        Entity::new(Class::Idle),
        crew_threads
    ))));
    let normal = install(&pool, Entity::new(Class::Normal), crew_threads);
    assert!(normal.iter().all(|thread| !thread.1), "{normal:?}");
    // The class of the calling thread has not changed.
    assert!(!kernel::is_idle_class(kernel::this_thread()));
}

#[test]
fn urgent_flows_run_while_the_background_is_busy() {
    let pool = pool();
    let (stop, stopped) = mpsc::channel::<()>();
    let urgent = pool.flow(Entity::new(Class::Iso));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            install(&pool, Entity::new(Class::Idle), move || {
                crew(1, |crew| {
                    crew.submit(Lane::Normal, move || while stopped.try_recv().is_err() {});
                    crew.next().unwrap().unwrap();
                });
            });
        });
        for round in 0..20 {
            assert_eq!(urgent.run(move || round).unwrap(), round);
        }
        stop.send(()).unwrap();
    });
}
