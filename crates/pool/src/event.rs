//! Something that happens once, and the threads that wait for it.
//!
//! | a thread that waits | what happens |
//! |---|---|
//! | 1. prepares to sleep ([`Sleeper`]) | 1. sets the flag |
//! | 2. enters the list, under its lock | 2. takes the list, under its lock |
//! | 3. reads the flag; sleeps if it is not set | 3. wakes the sleepers that it took |
//!
//! The lock orders the two. Either the list that is taken has the thread, or the thread reads the
//! flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain_policy::{Class, Entity, Latency, SpinLimits};
use refrain_sync::clock::RealClock;
use refrain_sync::{Mutex, lock};
use refrain_timer::{NEVER_NS, TimerId, deadline_after};

use crate::idle::Sleeper;
use crate::pool::state::current::current_worker;
use crate::pool::worker_pool::Pool;

/// Something that happens once. Threads wait for it, with or without a time limit: the only way to
/// wait for a time, so that every such wait can end early.
///
/// A job can wait, too, but its worker does nothing else meanwhile.
#[derive(Debug, Default)]
pub struct Event {
    flag: Arc<AtomicBool>,
    waiting: Mutex<Vec<Arc<Sleeper>>>,
}

impl Event {
    /// Something that has not happened.
    pub fn new() -> Event {
        Event::default()
    }

    /// Makes it happen: all who wait go on.
    pub fn happen(&self) {
        self.flag.store(true, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for sleeper in waiting {
            sleeper.wake();
        }
    }

    /// Whether it has happened.
    // Relaxed: no other data depends on it.
    pub fn has_happened(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// What [`Event::has_happened`] reads, for signal handlers, which cannot wake anybody: a thread
    /// then has to call [`Event::happen`].
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Waits until it has happened.
    pub fn wait(&self) {
        wait(&[self], None);
    }

    /// Waits until it has happened, for `time_max` at most. Returns whether it has.
    pub fn wait_for(&self, time_max: Duration) -> bool {
        Event::wait_for_any(&[self], time_max)
    }

    /// Waits until one of `events` has happened, for `time_max` at most. Returns whether one has.
    pub fn wait_for_any(events: &[&Event], time_max: Duration) -> bool {
        wait(events, Some(time_max));
        has_any_happened(events)
    }
}

fn has_any_happened(events: &[&Event]) -> bool {
    events.iter().any(|event| event.has_happened())
}

fn wait(events: &[&Event], time_max: Option<Duration>) {
    let sleeper = Arc::new(Sleeper::default());
    sleeper.bind_to_current_thread();
    sleeper.prepare_to_sleep();
    for event in events {
        lock(&event.waiting).push(Arc::clone(&sleeper));
    }
    if !has_any_happened(events) {
        sleep(&sleeper, time_max);
    }
    for event in events {
        lock(&event.waiting).retain(|other| !Arc::ptr_eq(other, &sleeper));
    }
}

/// Sleeps until the sleeper is woken: by an event, or by a timer of the process's pool. A worker
/// cannot wait for timers that it may have to fire itself, and some systems refuse the pool's
/// threads: then the sleep has a time limit of its own.
fn sleep(sleeper: &Arc<Sleeper>, time_max: Option<Duration>) {
    let timer = time_max.and_then(|time| add_timer(sleeper, time));
    let clock = RealClock::new();
    let until_ns = match time_max {
        Some(time) if timer.is_none() => deadline_after(0, time),
        _ => NEVER_NS,
    };
    sleeper.sleep(SpinLimits::default(), until_ns, || clock.now_ns());
    if let Some((pool, id)) = timer {
        pool.cancel(id);
    }
}

fn add_timer(sleeper: &Arc<Sleeper>, delay: Duration) -> Option<(Arc<Pool>, TimerId)> {
    if current_worker().is_some() {
        return None;
    }
    let pool = Pool::of_process().ok()?;
    let flow = pool.flow(Entity::new(Class::Normal).with_latency(Latency::Sensitive));
    let sleeper = Arc::clone(sleeper);
    let wake = move || {
        sleeper.wake();
    };
    let timer = pool.after(delay, &flow, wake);
    Some((pool, timer))
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A lost wake-up shows as a deadlock.
    #[test]
    fn who_waits_for_two_events_sees_either() {
        loom::model(|| {
            let events = Arc::new([Event::new(), Event::new()]);
            let happening = Arc::clone(&events);
            // On a separate thread: loom would take a late unpark for the end of a join.
            let waiting = thread::spawn(move || {
                let [one, two] = &*events;
                wait(&[one, two], None);
                assert!(two.has_happened());
                assert!(lock(&one.waiting).is_empty());
            });
            happening[1].happen();
            waiting.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
#[allow(
    clippy::unwrap_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use std::thread;

    use super::*;
    use crate::pool::Options;

    const LONG: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(1);

    /// The number of threads that wait.
    fn waiting(event: &Event) -> usize {
        lock(&event.waiting).len()
    }

    fn happen_when_waited_for(event: &Event, threads: usize) {
        while waiting(event) < threads {
            thread::yield_now();
        }
        event.happen();
    }

    #[test]
    fn all_who_wait_go_on_when_it_happens() {
        let event = Event::new();
        thread::scope(|scope| {
            let limited = [0; 2].map(|_| scope.spawn(|| event.wait_for(LONG)));
            let unlimited = scope.spawn(|| event.wait());
            happen_when_waited_for(&event, 3);
            assert!(limited.into_iter().all(|waiting| waiting.join().unwrap()));
            unlimited.join().unwrap();
        });
        assert!(event.has_happened() && event.wait_for(LONG));
        assert_eq!(waiting(&event), 0);
    }

    #[test]
    fn a_wait_ends_with_its_time_and_leaves_nothing_behind() {
        let (event, clock) = (Event::new(), RealClock::new());
        assert!(!event.wait_for(SHORT));
        assert!(clock.now_ns() >= 1_000_000);
        assert!(!event.wait_for(Duration::ZERO));
        assert_eq!(waiting(&event), 0);
    }

    #[test]
    fn any_of_several_ends_a_wait() {
        let events = [Event::new(), Event::new()];
        let [one, two] = &events;
        thread::scope(|scope| {
            let waiting = scope.spawn(|| Event::wait_for_any(&[one, two], LONG));
            happen_when_waited_for(two, 1);
            assert!(waiting.join().unwrap());
        });
        assert!(!one.has_happened());
        assert_eq!(waiting(one), 0);
    }

    /// The only worker of its pool has nobody who fires a timer for it.
    #[test]
    fn a_job_can_wait() {
        let pool = Pool::start(Options::with_workers(1)).unwrap();
        let flow = pool.flow(Entity::new(Class::Normal));
        assert_eq!(flow.run(|| Event::new().wait_for(SHORT)), Ok(false));
        let event = Arc::new(Event::new());
        let inside = Arc::clone(&event);
        let job = flow.spawn(move || assert!(inside.wait_for(LONG)));
        happen_when_waited_for(&event, 1);
        assert_eq!(job.wait(), Ok(()));
    }
}
