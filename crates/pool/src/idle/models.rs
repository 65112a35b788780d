//! Models: loom runs them in every interleaving. A lost wake-up shows as a thread that sleeps
//! forever.

use loom::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use refrain_policy::SpinLimits;

use super::Sleeper;

/// Prepares to sleep, looks, sleeps, until `wanted` units of work have been taken.
fn run_worker(sleeper: &Sleeper, work: &AtomicUsize, wanted: usize) {
    sleeper.bind_to_current_thread();
    let mut taken = 0;
    while taken < wanted {
        sleeper.prepare_to_sleep();
        match work.swap(0, Ordering::Relaxed) {
            0 => _ = sleeper.sleep(SpinLimits::default(), u64::MAX, || 0),
            found => {
                sleeper.cancel_sleep();
                taken += found;
            }
        }
    }
}

/// Only the state of the sleeper orders memory: the work itself is counted with relaxed operations.
#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let sleeper = Arc::new(Sleeper::default());
        let work = Arc::new(AtomicUsize::new(0));
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let (sleeper, work) = (Arc::clone(&sleeper), Arc::clone(&work));
                thread::spawn(move || {
                    work.fetch_add(1, Ordering::Relaxed);
                    sleeper.wake();
                })
            })
            .collect();
        // On a separate thread: loom would take a late unpark for the end of a join.
        let worker = thread::spawn(move || run_worker(&sleeper, &work, 2));
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        worker.join().unwrap();
    });
}
