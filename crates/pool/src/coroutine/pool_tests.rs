//! Coroutines on the workers of a pool.
//!
//! `unsafe` here: movable coroutines; each says why it may be moved.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use refrain_policy::{Class, Entity};

use super::*;
use crate::pool::{Options, Pool};

/// More coroutines wait than there are workers, and jobs still run.
#[test]
fn coroutines_that_wait_hold_no_worker() {
    let _alone = super::tests::alone();
    for workers in [1, 3] {
        let pool = Pool::start(Options::with_workers(workers)).unwrap();
        let flow = || pool.flow(Entity::new(Class::Normal));
        let queue = Arc::new(CoQueue::new());
        let total = Arc::new(CoMutex::new(0));
        let started = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let (queue, total) = (queue.clone(), total.clone());
                let started = started.clone();
                let body = move |yielder: &Yielder<'_>| {
                    started.fetch_add(1, SeqCst);
                    queue.wait(yielder)?;
                    *total.lock(yielder)? += 1;
                    Ok::<_, HoldsLock>(())
                };
                // SAFETY: shared pointers that are `Send` are on the stack; no thread-local
                // variable is used.
                let made = unsafe { MovableCoroutine::new(Settings::default(), body) };
                flow().spawn_future(made.unwrap())
            })
            .collect();
        while queue.waiting() < 50 {
            std::thread::yield_now();
        }
        assert_eq!(started.load(SeqCst), 50);
        // All of them wait; a job still finds a worker.
        assert_eq!(flow().spawn(|| 7).wait(), Ok(7));
        assert_eq!(queue.wake_all(), 50);
        for task in tasks {
            assert_eq!(task.wait(), Ok(Ok(Ok(()))));
        }
        assert_eq!(*total.try_lock().unwrap(), 50);
    }
}
