//! Timers without a pool: one thread that sleeps until the next deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use refrain_sync::clock::Clock;
use refrain_timer::{NEVER_NS, Notify, Sink, TimerId, TimerSystem, deadline_after};

use crate::thread::class::KernelClass;
use crate::thread::settings::ThreadSettings;
use crate::thread::start::start;

#[derive(Default)]
struct Control {
    /// Set before the first timer can be added.
    thread: OnceLock<Thread>,
    is_closing: AtomicBool,
}

/// Wakes the thread when a timer with an earlier deadline is added.
#[derive(Clone, Default)]
struct ThreadWaker(Arc<Control>);

impl ThreadWaker {
    fn wake(&self) {
        self.0.thread.get().inspect(|thread| thread.unpark());
    }
}

impl Notify for ThreadWaker {
    fn earlier(&self, _worker: usize, _deadline_ns: u64) {
        self.wake();
    }
}

/// A timer system with one worker, and a thread that drives it. Dropping it drops the pending
/// timers.
pub struct TimerThread<P> {
    system: Arc<TimerSystem<P, ThreadWaker>>,
    waker: ThreadWaker,
    clock: Arc<dyn Clock>,
    thread: Option<JoinHandle<()>>,
}

impl<P: Send + 'static> TimerThread<P> {
    /// Starts the thread. When a deadline has come, `sink` gets the timer, as worker 0. If `sink`
    /// panics, only that call ends.
    ///
    /// The thread is of the normal scheduling class, whatever the class of the caller.
    ///
    /// # Errors
    /// The system refuses the thread.
    pub fn start(
        clock: Arc<dyn Clock>,
        sink: impl Sink<P> + Send + 'static,
    ) -> std::io::Result<TimerThread<P>> {
        let waker = ThreadWaker::default();
        let system = Arc::new(TimerSystem::new(1, waker.clone()));
        let run = {
            let (system, waker, clock) = (Arc::clone(&system), waker.clone(), Arc::clone(&clock));
            move || drive(&system, &waker.0, &*clock, &sink)
        };
        let settings = ThreadSettings::from_process(KernelClass::Normal);
        let thread = start(&settings, "timers", run)?;
        // The cell is new, so it is empty.
        let _ = waker.0.thread.set(thread.thread().clone());
        Ok(TimerThread {
            system,
            waker,
            clock,
            thread: Some(thread),
        })
    }
}

impl<P> TimerThread<P> {
    /// The time by the given clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        now_ns(&*self.clock)
    }

    /// Adds a timer that fires at the time `deadline_ns`.
    pub fn add_at(&self, deadline_ns: u64, payload: P) -> TimerId {
        self.system.add(0, deadline_ns, payload)
    }

    /// Adds a timer that fires `delay` from now.
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

/// Fires what is due and parks until the next deadline. An unpark between the check and the park is
/// not lost: the park then returns at once.
fn drive<P>(
    system: &TimerSystem<P, ThreadWaker>,
    control: &Control,
    clock: &dyn Clock,
    sink: &impl Sink<P>,
) {
    while !control.is_closing.load(Ordering::Relaxed) {
        let (next_ns, now) = (system.next_ns(0), now_ns(clock));
        if next_ns == NEVER_NS {
            thread::park();
        } else if next_ns > now {
            thread::park_timeout(Duration::from_nanos(next_ns - now));
        } else {
            // AssertUnwindSafe: the system holds no lock while the sink runs, and the sink is
            // responsible for its own state.
            let _ = catch_unwind(AssertUnwindSafe(|| system.expire(0, now, sink)));
        }
    }
}

impl<P> Drop for TimerThread<P> {
    fn drop(&mut self) {
        self.waker.0.is_closing.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // It catches the panics of the sink and has none of its own.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use refrain_sync::clock::RealClock;
    use refrain_timer::Expired;

    #[test]
    fn an_earlier_timer_fires_before_a_later_one() {
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
        // On a machine that stalled for 5 ms it may have fired.
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
