//! Models: loom runs them in every interleaving. A lost wake-up shows as a thread that nobody will wake.

use loom::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use refrain_policy::SpinLimits;

use super::Sleeper;

/// Lies down, looks, sleeps, until `wanted` pieces of work were taken.
fn work_off(sleeper: &Sleeper, work: &AtomicUsize, wanted: usize) {
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

/// The order of memory is by the sleeper's word alone: the work itself is counted relaxed.
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
        // On a thread of its own: to loom, an unpark that comes late would end a join.
        let worker = thread::spawn(move || work_off(&sleeper, &work, 2));
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        worker.join().unwrap();
    });
}
