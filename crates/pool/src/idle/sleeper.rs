//! The sleep of one worker: its state decides whether a wake-up needs a system call.
//!
//! ```text
//!           prepare_to_sleep            sleep                  sleep
//!   AWAKE ────────────▶ IDLE ◀─────────▶ LIGHT   IDLE ────────▶ PARKED
//!     ▲                   │                │                      │
//!     └───────────────────┴────────────────┴──────────────────────┘
//!   cancel_sleep or the end of the time (the sleeper), wake (any thread; unparks from PARKED only)
//! ```

use std::time::Duration;

use refrain_policy::SpinLimits;
use refrain_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use refrain_sync::{Mutex, lock, thread};

use super::light::LightSleep;

const AWAKE: u32 = 0;
const IDLE: u32 = 1;
const LIGHT: u32 = 2;
const PARKED: u32 = 3;

/// What ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// A call of [`Sleeper::wake`] before it parked.
    Awake,
    /// A call of [`Sleeper::wake`], through the kernel.
    Parked,
    /// The end of the given time.
    TimedOut,
}

/// How the sleeps of a worker have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WakeCounts {
    /// Ended without the kernel: before it slept, while it spun, or in the light sleep.
    pub awake: u64,
    /// Ended through the kernel.
    pub parked: u64,
    /// Ended by time.
    pub by_time: u64,
    /// System calls of other threads to wake it.
    pub system_calls: u64,
}

/// The sleep of one worker. See the head of the file and the module's README.
#[derive(Debug)]
#[repr(align(128))] // Other threads write the state; its neighbors must not share the cache line.
pub struct Sleeper {
    state: AtomicU32,
    thread: Mutex<Option<thread::Thread>>,
    /// Written only by the sleeper: awake, parked, timed out.
    ends: [AtomicU64; 3],
    system_calls: AtomicU64,
}

impl Default for Sleeper {
    fn default() -> Self {
        Sleeper {
            state: AtomicU32::new(AWAKE),
            thread: Mutex::new(None),
            ends: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
            system_calls: AtomicU64::new(0),
        }
    }
}

impl Sleeper {
    /// Makes the calling thread the one that sleeps here.
    pub fn bind_to_current_thread(&self) {
        *lock(&self.thread) = Some(thread::current());
    }

    /// Called by a worker that has found nothing. It must look again before it sleeps: then it sees
    /// everything written before any earlier [`Sleeper::wake`].
    // An exchange, not a store: it reads what the waker wrote, so the waker's earlier writes are
    // visible.
    pub fn prepare_to_sleep(&self) {
        self.state.swap(IDLE, Ordering::AcqRel);
    }

    /// Called by a worker that has found something after all.
    pub fn cancel_sleep(&self) {
        self.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// Whether the worker has been woken since [`Sleeper::prepare_to_sleep`].
    pub fn is_woken(&self) -> bool {
        self.state.load(Ordering::Acquire) == AWAKE
    }

    /// Sleeps until the worker is woken (not at all if it has been since
    /// [`Sleeper::prepare_to_sleep`]), or until `until_ns` by `now_ns`; [`u64::MAX`] means no time
    /// limit. Afterwards the worker is awake.
    pub fn sleep(&self, limits: SpinLimits, until_ns: u64, now_ns: impl Fn() -> u64) -> WakeReason {
        let reason = self.wait(limits, until_ns, now_ns);
        let ends = &self.ends[reason as usize];
        ends.store(ends.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        reason
    }

    fn wait(&self, limits: SpinLimits, until_ns: u64, now_ns: impl Fn() -> u64) -> WakeReason {
        if limits.spin_ns > 0 {
            let end_ns = now_ns().saturating_add(limits.spin_ns).min(until_ns);
            while !self.is_woken() && now_ns() < end_ns {
                std::hint::spin_loop();
            }
        }
        if limits.light_ns > 0
            && let Some(light) = LightSleep::detect()
            && self.moves(IDLE, LIGHT)
        {
            let end_ns = now_ns().saturating_add(limits.light_ns).min(until_ns);
            light.wait(&self.state, LIGHT, || now_ns() >= end_ns);
            self.moves(LIGHT, IDLE);
        }
        if !self.moves(IDLE, PARKED) {
            return WakeReason::Awake;
        }
        while !self.is_woken() {
            let left_ns = until_ns.saturating_sub(match until_ns {
                u64::MAX => 0,
                _ => now_ns(),
            });
            if left_ns == 0 && self.moves(PARKED, AWAKE) {
                return WakeReason::TimedOut;
            }
            park(left_ns);
        }
        WakeReason::Parked
    }

    fn moves(&self, from: u32, to: u32) -> bool {
        let exchange = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        exchange.is_ok()
    }

    /// Wakes the worker if it sleeps or is about to; returns whether that took a system call. The
    /// worker then sees what the caller wrote before.
    pub fn wake(&self) -> bool {
        if self.state.swap(AWAKE, Ordering::AcqRel) != PARKED {
            return false; // The write itself ends a light sleep.
        }
        self.system_calls.fetch_add(1, Ordering::Relaxed);
        let thread = lock(&self.thread).clone();
        thread.inspect(thread::Thread::unpark);
        true
    }

    /// How its sleeps have ended. While the worker sleeps and wakes, the numbers may come from
    /// different moments.
    pub fn wake_counts(&self) -> WakeCounts {
        let [awake, parked, by_time] = [0, 1, 2].map(|end: usize| {
            let count: &AtomicU64 = &self.ends[end];
            count.load(Ordering::Relaxed)
        });
        WakeCounts {
            awake,
            parked,
            by_time,
            system_calls: self.system_calls.load(Ordering::Relaxed),
        }
    }
}

/// Parks the thread for `left_ns` at most; may return early.
fn park(left_ns: u64) {
    if cfg!(loom) || left_ns == u64::MAX {
        return thread::park(); // Models have no time, so only a wake-up ends a sleep.
    }
    #[cfg(not(loom))]
    thread::park_timeout(Duration::from_nanos(left_ns));
    #[cfg(loom)]
    let _ = Duration::ZERO;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;

    fn clock() -> impl Fn() -> u64 + Copy {
        let start = Instant::now();
        move || start.elapsed().as_nanos() as u64
    }

    #[test]
    fn a_sleep_with_a_time_limit_ends_on_time() {
        let (sleeper, now_ns) = (Sleeper::default(), clock());
        sleeper.bind_to_current_thread();
        for limit_ns in [0, 100_000] {
            sleeper.prepare_to_sleep();
            let spin_ns = limit_ns;
            let light_ns = limit_ns;
            let until_ns = now_ns() + 2_000_000;
            let woken = sleeper.sleep(SpinLimits { spin_ns, light_ns }, until_ns, now_ns);
            assert_eq!(woken, WakeReason::TimedOut);
            assert!(now_ns() >= until_ns && sleeper.is_woken());
        }
        assert_eq!(sleeper.wake_counts().by_time, 2);
    }

    #[test]
    fn a_worker_that_was_woken_before_does_not_sleep() {
        let sleeper = Sleeper::default();
        sleeper.bind_to_current_thread();
        sleeper.prepare_to_sleep();
        assert!(!sleeper.wake());
        let woken = sleeper.sleep(SpinLimits::default(), u64::MAX, || 0);
        assert_eq!(woken, WakeReason::Awake);
    }

    fn ping_pong(limits: SpinLimits, rounds: u64) -> [WakeCounts; 2] {
        let sleepers: Arc<[Sleeper; 2]> = Arc::default();
        let turn = Arc::new(AtomicU64::new(0));
        let play = |me: usize| {
            let (sleepers, turn) = (Arc::clone(&sleepers), Arc::clone(&turn));
            move || {
                let now_ns = clock();
                sleepers[me].bind_to_current_thread();
                let mut next = me as u64;
                while next < 2 * rounds {
                    sleepers[me].prepare_to_sleep();
                    if turn.load(Ordering::Acquire) == next {
                        sleepers[me].cancel_sleep();
                        turn.store(next + 1, Ordering::Release);
                        sleepers[1 - me].wake();
                        next += 2;
                    } else {
                        sleepers[me].sleep(limits, u64::MAX, now_ns);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(play(0));
            scope.spawn(play(1));
        });
        [sleepers[0].wake_counts(), sleepers[1].wake_counts()]
    }

    #[test]
    fn a_spinning_worker_is_woken_without_the_kernel() {
        let spin_ns = 60_000_000_000; // No round takes a minute, however busy the machine is.
        let limits = SpinLimits {
            spin_ns,
            light_ns: 0,
        };
        for wakes in ping_pong(limits, 200) {
            assert_eq!((wakes.system_calls, wakes.parked), (0, 0));
            assert!(wakes.awake > 0);
        }
    }

    #[test]
    fn a_parked_worker_is_woken_through_the_kernel() {
        let wakes = ping_pong(SpinLimits::default(), 2000);
        let parked = wakes.map(|wakes| wakes.parked).iter().sum::<u64>();
        let calls = wakes.map(|wakes| wakes.system_calls).iter().sum::<u64>();
        assert!(parked > 0 && calls >= parked, "{wakes:?}");
    }
}
