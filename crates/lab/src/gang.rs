//! Threads that measure together: all start at once, and the caller waits for all.
//!
//! They are detached threads of the pool: what they do (spin, block in the kernel, wait for each
//! other) must not happen on workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refrain_pool::{Lock, SignalDelivery, start_detached};

use crate::error::{Error, Result};

struct Shared<R> {
    arrived: AtomicUsize,
    members: usize,
    /// Set if a thread was refused: then nobody waits for the others.
    is_given_up: std::sync::atomic::AtomicBool,
    ended: AtomicUsize,
    results: Lock<Vec<Option<R>>>,
    caller: std::thread::Thread,
}

/// Counts a thread as ended, even if it panics.
struct Ending<R>(Arc<Shared<R>>);

impl<R> Drop for Ending<R> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::AcqRel);
        self.0.caller.unpark();
    }
}

/// Runs `body` on `members` threads, which start at once; returns their results in order.
///
/// # Errors
/// The system refuses a thread, or a thread panics.
pub fn run<R: Send + 'static>(
    members: usize,
    body: impl Fn(usize) -> R + Send + Sync + 'static,
) -> Result<Vec<R>> {
    let shared = Arc::new(Shared {
        arrived: AtomicUsize::new(0),
        members,
        is_given_up: false.into(),
        ended: AtomicUsize::new(0),
        results: Lock::new((0..members).map(|_| None).collect()),
        caller: std::thread::current(),
    });
    let body = Arc::new(body);
    let mut started = 0;
    while started < members && start(&shared, &body, started) {
        started += 1;
    }
    if started < members {
        shared.is_given_up.store(true, Ordering::Release);
    }
    while shared.ended.load(Ordering::Acquire) < started {
        std::thread::park();
    }
    if started < members {
        return Err(Error::NoThread);
    }
    let results = std::mem::take(&mut *shared.results.lock());
    results
        .into_iter()
        .collect::<Option<Vec<R>>>()
        .ok_or(Error::ThreadLost)
}

fn start<R: Send + 'static>(
    shared: &Arc<Shared<R>>,
    body: &Arc<impl Fn(usize) -> R + Send + Sync + 'static>,
    index: usize,
) -> bool {
    let (shared, body) = (shared.clone(), body.clone());
    start_detached("lab", SignalDelivery::OwnFaults, move || {
        let ending = Ending(shared);
        let shared = &ending.0;
        shared.arrived.fetch_add(1, Ordering::AcqRel);
        wait_until(|| {
            shared.arrived.load(Ordering::Acquire) == shared.members
                || shared.is_given_up.load(Ordering::Acquire)
        });
        if shared.is_given_up.load(Ordering::Acquire) {
            return;
        }
        let result = body(index);
        shared.results.lock()[index] = Some(result);
    })
}

/// Waits for a running thread to do something soon; yields the processor now and then.
pub(crate) fn wait_until(is_true: impl Fn() -> bool) {
    let mut looks = 0_u32;
    while !is_true() {
        looks = looks.wrapping_add(1);
        match looks % 64 {
            0 => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Where `members` threads meet repeatedly.
#[derive(Debug)]
pub(crate) struct MeetingPoint {
    members: usize,
    arrivals: AtomicUsize,
}

impl MeetingPoint {
    pub(crate) fn new(members: usize) -> MeetingPoint {
        MeetingPoint {
            members,
            arrivals: AtomicUsize::new(0),
        }
    }

    /// Waits until all have called this as often as the caller.
    pub(crate) fn meet(&self) {
        let arrival = self.arrivals.fetch_add(1, Ordering::AcqRel);
        let all = (arrival / self.members + 1) * self.members;
        wait_until(|| self.arrivals.load(Ordering::Acquire) >= all);
    }
}

/// A value dropped when its last user has finished with it, even if the closure shared by a gang
/// lives on.
#[derive(Debug)]
pub(crate) struct Countdown<T> {
    users: AtomicUsize,
    value: Lock<Option<Arc<T>>>,
}

impl<T> Countdown<T> {
    pub(crate) fn new(users: usize, value: T) -> Countdown<T> {
        Countdown {
            users: AtomicUsize::new(users),
            value: Lock::new(Some(Arc::new(value))),
        }
    }

    /// `None` after all have finished.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.value.lock().clone()
    }

    /// Called once by each user, which no longer holds the value.
    pub(crate) fn finish(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.value.lock().take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_threads_run_together() {
        let meeting = Arc::new(MeetingPoint::new(3));
        // Ends only if the three run at the same time.
        let results = run(3, move |index| {
            (0..100).for_each(|_| meeting.meet());
            index * 10
        });
        assert_eq!(results.unwrap(), [0, 10, 20]);
        assert!(run(0, |_| ()).unwrap().is_empty());
    }

    #[test]
    fn the_last_user_drops_the_value() {
        let countdown = Countdown::new(2, "value");
        countdown.finish();
        assert_eq!(countdown.get().as_deref(), Some(&"value"));
        countdown.finish();
        assert_eq!(countdown.get(), None);
    }

    #[test]
    fn a_panic_of_a_member_is_an_error() {
        let lost = run(2, |index| {
            assert!(index == 0, "as the test wants");
        });
        assert!(matches!(lost, Err(Error::ThreadLost)));
    }
}
