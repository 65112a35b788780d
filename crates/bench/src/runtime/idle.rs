//! Rows about waiting: a token that goes round, and what a worker costs that is poked now and then.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refrain_policy::{SpinLimits, SpinPolicy};
use refrain_pool::idle::{MachineLoad, Sleeper};

use super::row::{Bar, Row};

const HOPS: u64 = 20_000;
const POKES: u64 = 300;

pub fn rows() -> Vec<Row> {
    vec![ring(), pokes()]
}

fn ring() -> Row {
    Row::new(
        "ring-2-workers",
        "token between two workers that wait for it, per hop",
        "ns",
        Bar::OfSecond(0.8),
    )
    .with("refrain, adaptive", || hop_ns(true))
    .with("refrain, always parking", || hop_ns(false))
    .with("std threads, park and unpark", std_hop_ns)
    .with("tokio, two tasks on two workers", tokio_hop_ns)
}

/// One worker's way to wait.
struct Waiting<'a> {
    habit: SpinPolicy,
    load: &'a MachineLoad,
    is_adaptive: bool,
}

impl Waiting<'_> {
    /// Waits on `bed` until woken.
    fn wait(&mut self, bed: &Sleeper, now_ns: impl Fn() -> u64 + Copy) {
        let now = now_ns();
        let patience = if self.is_adaptive {
            self.habit.limits(now, !self.load.is_overcommitted(now))
        } else {
            SpinLimits::default()
        };
        bed.sleep(patience, u64::MAX, now_ns);
        self.habit.record_wake(now_ns());
    }
}

fn clock() -> impl Fn() -> u64 + Copy {
    let start = Instant::now();
    move || start.elapsed().as_nanos() as u64
}

fn hop_ns(is_adaptive: bool) -> f64 {
    let beds = [Sleeper::default(), Sleeper::default()];
    let (turn, load) = (AtomicU64::new(0), MachineLoad::default());
    let play = |me: usize| {
        let now_ns = clock();
        let mut waiting = Waiting {
            habit: SpinPolicy::default(),
            load: &load,
            is_adaptive,
        };
        beds[me].bind_to_current_thread();
        let mut next = me as u64;
        while next < HOPS {
            beds[me].prepare_to_sleep();
            if turn.load(Ordering::Acquire) == next {
                beds[me].cancel_sleep();
                turn.store(next + 1, Ordering::Release);
                beds[1 - me].wake();
                next += 2;
            } else {
                waiting.wait(&beds[me], now_ns);
            }
        }
    };
    time_two(play)
}

/// Nanoseconds per hop, while 0 and 1 play on two threads.
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

fn pokes() -> Row {
    Row::new(
        "poke-1khz",
        "processor time of a worker that is poked 1,000 times per second",
        "%",
        Bar::AtMost(5.0),
    )
    .with("refrain, adaptive", poked_share)
}

fn poked_share() -> f64 {
    let (bed, is_over) = (Sleeper::default(), AtomicBool::new(false));
    let (load, start) = (MachineLoad::default(), Instant::now());
    let used_ns = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let now_ns = clock();
            let mut waiting = Waiting {
                habit: SpinPolicy::default(),
                load: &load,
                is_adaptive: true,
            };
            bed.bind_to_current_thread();
            let before_ns = thread_cpu_ns();
            loop {
                bed.prepare_to_sleep();
                if is_over.load(Ordering::Acquire) {
                    return thread_cpu_ns() - before_ns;
                }
                waiting.wait(&bed, now_ns);
            }
        });
        for _ in 0..POKES {
            std::thread::sleep(Duration::from_millis(1));
            bed.wake();
        }
        is_over.store(true, Ordering::Release);
        bed.wake();
        sleeper.join().unwrap_or(f64::NAN)
    });
    100.0 * used_ns / start.elapsed().as_nanos() as f64
}

/// What the calling thread has used so far; not a number where the kernel does not tell.
fn thread_cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}
