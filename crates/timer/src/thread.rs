//! A driver for who has no pool of workers: one thread that sleeps until the next deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Builder, JoinHandle, Thread};
use std::time::Duration;

use super::{NEVER_NS, Notify, Sink, TimerId, TimerSystem, deadline_after};
use crate::clock::Clock;

/// Wakes the thread.
#[derive(Default)]
struct Bell {
    /// Set before the first timer can be added.
    thread: OnceLock<Thread>,
    is_over: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        self.thread.get().inspect(|thread| thread.unpark());
    }
}

impl Notify for Arc<Bell> {
    fn earlier(&self, _worker: usize, _deadline_ns: u64) {
        self.ring();
    }
}

/// A timer system with one worker, and a thread that runs it. Dropped, it drops the timers that are pending.
pub struct TimerThread<P> {
    system: Arc<TimerSystem<P, Arc<Bell>>>,
    bell: Arc<Bell>,
    clock: Arc<dyn Clock>,
    thread: Option<JoinHandle<()>>,
}

impl<P: Send + 'static> TimerThread<P> {
    /// Starts the thread. `sink` gets each timer when its deadline has come, as worker 0; a panic in it ends that call
    /// alone.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn start(
        clock: Arc<dyn Clock>,
        sink: impl Sink<P> + Send + 'static,
    ) -> std::io::Result<TimerThread<P>> {
        let bell = Arc::new(Bell::default());
        let system = Arc::new(TimerSystem::new(1, Arc::clone(&bell)));
        let run = {
            let (system, bell, clock) =
                (Arc::clone(&system), Arc::clone(&bell), Arc::clone(&clock));
            move || drive(&system, &bell, &*clock, &sink)
        };
        let thread = Builder::new().name("timers".into()).spawn(run)?;
        // The bell is new, so it is empty.
        let _ = bell.thread.set(thread.thread().clone());
        Ok(TimerThread {
            system,
            bell,
            clock,
            thread: Some(thread),
        })
    }
}

impl<P> TimerThread<P> {
    /// The time by the clock given, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        now_ns(&*self.clock)
    }

    /// Adds a timer that fires when the time is `deadline_ns`.
    pub fn add_at(&self, deadline_ns: u64, payload: P) -> TimerId {
        self.system.add(0, deadline_ns, payload)
    }

    /// Adds a timer that fires when `delay` has passed from now.
    pub fn add_after(&self, delay: Duration, payload: P) -> TimerId {
        self.add_at(deadline_after(self.now_ns(), delay), payload)
    }

    /// See [`TimerSystem::cancel`].
    pub fn cancel(&self, id: TimerId) -> Option<P> {
        self.system.cancel(id)
    }

    /// The system, for batches. Its only worker is 0.
    pub fn system(&self) -> &TimerSystem<P, impl Notify + use<P>> {
        &self.system
    }
}

fn now_ns(clock: &dyn Clock) -> u64 {
    deadline_after(0, clock.now())
}

/// Fires what is due and parks until the next deadline. An unpark between the check and the park is not lost: the park returns at once.
fn drive<P>(
    system: &TimerSystem<P, Arc<Bell>>,
    bell: &Bell,
    clock: &dyn Clock,
    sink: &impl Sink<P>,
) {
    while !bell.is_over.load(Ordering::Relaxed) {
        let (next_ns, now) = (system.next_ns(0), now_ns(clock));
        if next_ns == NEVER_NS {
            thread::park();
        } else if next_ns > now {
            thread::park_timeout(Duration::from_nanos(next_ns - now));
        } else {
            // AssertUnwindSafe: the system holds no lock while the sink runs, and the sink answers for itself.
            let _ = catch_unwind(AssertUnwindSafe(|| system.expire(0, now, sink)));
        }
    }
}

impl<P> Drop for TimerThread<P> {
    fn drop(&mut self) {
        self.bell.is_over.store(true, Ordering::Relaxed);
        self.bell.ring();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // It catches the sink's panics and has none of its own.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::Expired;
    use crate::clock::RealClock;

    #[test]
    fn an_earlier_timer_is_not_kept_waiting_by_a_later_one() {
        let (sender, receiver) = mpsc::channel();
        let clock = Arc::new(RealClock::new());
        let sink = move |_: usize, event: Expired<&'static str>| sender.send(event).unwrap();
        let timers = TimerThread::start(clock, sink).unwrap();
        timers.add_after(Duration::from_secs(3600), "late");
        let cancelled = timers.add_after(Duration::from_millis(5), "cancelled");
        std::thread::sleep(Duration::from_millis(2)); // By now the thread sleeps.
        timers.add_after(Duration::from_millis(10), "second");
        timers.add_at(timers.now_ns(), "first");
        let is_cancelled = timers.cancel(cancelled).is_some();
        let fired: Vec<_> = receiver
            .iter()
            .filter(|event| event.payload != "cancelled")
            .take(2)
            .collect();
        assert_eq!(fired[0].payload, "first");
        assert_eq!(fired[1].payload, "second");
        assert!(timers.now_ns() >= fired[1].deadline_ns);
        // On a machine that stood still for 5 ms it may have fired.
        assert!(is_cancelled || timers.now_ns() > 5_000_000);
        drop(timers);
        assert_eq!(receiver.iter().count(), 0);
    }

    #[test]
    fn a_panicking_sink_does_not_end_the_thread() {
        let (sender, receiver) = mpsc::channel();
        let sink = move |_: usize, event: Expired<u32>| {
            assert_ne!(event.payload, 1);
            sender.send(event.payload).unwrap();
        };
        let timers = TimerThread::start(Arc::new(RealClock::new()), sink).unwrap();
        for payload in [1, 2] {
            timers.add_after(Duration::from_millis(u64::from(payload)), payload);
        }
        assert_eq!(receiver.recv(), Ok(2));
    }
}
