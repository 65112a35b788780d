//! Rows about waiting: a token between two workers, and the cost of a worker that is woken
//! regularly.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refrain_policy::{SpinLimits, SpinPolicy};
use refrain_pool::idle::{MachineLoad, Sleeper};

use super::row::{Row, Target};

const HOPS: u64 = 20_000;
const WAKE_UPS: u64 = 300;

pub fn rows() -> Vec<Row> {
    vec![ring(), wake_ups()]
}

fn ring() -> Row {
    Row::new(
        "ring-2-workers",
        "token between two workers that wait for it, per hop",
        "ns",
        Target::OfSecond(0.8),
    )
    .with("refrain, adaptive", || hop_ns(true))
    .with("refrain, always parking", || hop_ns(false))
    .with("std threads, park and unpark", std_hop_ns)
    .with("tokio, two tasks on two workers", tokio_hop_ns)
}

/// How a worker waits.
struct Waiting<'a> {
    spin_policy: SpinPolicy,
    load: &'a MachineLoad,
    is_adaptive: bool,
}

impl Waiting<'_> {
    /// Waits on `sleeper` until it is woken.
    fn wait(&mut self, sleeper: &Sleeper, now_ns: impl Fn() -> u64 + Copy) {
        let now = now_ns();
        let limits = if self.is_adaptive {
            self.spin_policy
                .limits(now, !self.load.is_overcommitted(now))
        } else {
            SpinLimits::default()
        };
        sleeper.sleep(limits, u64::MAX, now_ns);
        self.spin_policy.record_wake(now_ns());
    }
}

fn clock() -> impl Fn() -> u64 + Copy {
    let start = Instant::now();
    move || start.elapsed().as_nanos() as u64
}

fn hop_ns(is_adaptive: bool) -> f64 {
    let sleepers = [Sleeper::default(), Sleeper::default()];
    let (turn, load) = (AtomicU64::new(0), MachineLoad::default());
    let play = |me: usize| {
        let now_ns = clock();
        let mut waiting = Waiting {
            spin_policy: SpinPolicy::default(),
            load: &load,
            is_adaptive,
        };
        sleepers[me].bind_to_current_thread();
        let mut next = me as u64;
        while next < HOPS {
            sleepers[me].prepare_to_sleep();
            if turn.load(Ordering::Acquire) == next {
                sleepers[me].cancel_sleep();
                turn.store(next + 1, Ordering::Release);
                sleepers[1 - me].wake();
                next += 2;
            } else {
                waiting.wait(&sleepers[me], now_ns);
            }
        }
    };
    time_two(play)
}

/// The time per hop in nanoseconds, while 0 and 1 play on two threads.
fn time_two(play: impl Fn(usize) + Sync) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let play = &play;
        scope.spawn(move || play(0));
        scope.spawn(move || play(1));
    });
    start.elapsed().as_nanos() as f64 / HOPS as f64
}

fn std_hop_ns() -> f64 {
    let threads = std::sync::Mutex::new([None, None]);
    let start_line = std::sync::Barrier::new(2);
    let turn = AtomicU64::new(0);
    time_two(|me| {
        if let Ok(mut threads) = threads.lock() {
            threads[me] = Some(std::thread::current());
        }
        start_line.wait();
        let other = threads
            .lock()
            .ok()
            .and_then(|threads| threads[1 - me].clone());
        let mut next = me as u64;
        while next < HOPS {
            if turn.load(Ordering::Acquire) == next {
                turn.store(next + 1, Ordering::Release);
                other.iter().for_each(std::thread::Thread::unpark);
                next += 2;
            } else {
                std::thread::park();
            }
        }
    })
}

fn tokio_hop_ns() -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build();
    let Ok(runtime) = runtime else {
        return f64::NAN;
    };
    let (to_second, mut from_first) = tokio::sync::mpsc::channel::<()>(1);
    let (to_first, mut from_second) = tokio::sync::mpsc::channel::<()>(1);
    let start = Instant::now();
    let second = runtime.spawn(async move {
        while from_first.recv().await.is_some() {
            if to_first.send(()).await.is_err() {
                break;
            }
        }
    });
    let first = runtime.spawn(async move {
        for _ in 0..HOPS / 2 {
            if to_second.send(()).await.is_err() || from_second.recv().await.is_none() {
                break;
            }
        }
    });
    let ended = runtime.block_on(async { (first.await, second.await) });
    let is_whole = ended.0.is_ok() && ended.1.is_ok();
    if is_whole {
        start.elapsed().as_nanos() as f64 / HOPS as f64
    } else {
        f64::NAN
    }
}

fn wake_ups() -> Row {
    Row::new(
        "wake-1khz",
        "processor time of a worker that is woken 1,000 times per second",
        "%",
        Target::AtMost(5.0),
    )
    .with("refrain, adaptive", woken_share)
}

fn woken_share() -> f64 {
    let (sleeper, has_ended) = (Sleeper::default(), AtomicBool::new(false));
    let (load, start) = (MachineLoad::default(), Instant::now());
    let used_ns = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let now_ns = clock();
            let mut waiting = Waiting {
                spin_policy: SpinPolicy::default(),
                load: &load,
                is_adaptive: true,
            };
            sleeper.bind_to_current_thread();
            let before_ns = thread_cpu_ns();
            loop {
                sleeper.prepare_to_sleep();
                if has_ended.load(Ordering::Acquire) {
                    return thread_cpu_ns() - before_ns;
                }
                waiting.wait(&sleeper, now_ns);
            }
        });
        for _ in 0..WAKE_UPS {
            std::thread::sleep(Duration::from_millis(1));
            sleeper.wake();
        }
        has_ended.store(true, Ordering::Release);
        sleeper.wake();
        thread.join().unwrap_or(f64::NAN)
    });
    100.0 * used_ns / start.elapsed().as_nanos() as f64
}

/// The processor time of the calling thread so far; not a number if the kernel does not report it.
fn thread_cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}
