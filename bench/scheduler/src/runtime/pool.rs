//! Rows about the pool: urgent work and timers under load, rings of tokens.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use refrain_policy::topology::CpuId;
use refrain_policy::{Class, Entity};
use refrain_pool::pool::{Flow, Options, Pool};

use super::load::{Loaded, WORKERS, load_tokio, tokio_runtime};
use super::row::{Row, Target};

/// The number of samples behind each 99th percentile.
const SAMPLES: u64 = 300;
const HOPS: u64 = 1_000_000;

pub fn rows() -> Vec<Row> {
    vec![urgent(true), urgent(false), late(), ring(1), ring(WORKERS)]
}

/// The 99th percentile, in microseconds.
pub fn p99_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let at = (times.len() * 99).div_ceil(100).saturating_sub(1);
    times
        .get(at)
        .map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

/// Pauses from 0.5 to 2.5 ms, so that samples hit any part of a job.
pub fn pause(sample: u64) -> Duration {
    Duration::from_micros(500 + sample * 7919 % 2000)
}

fn urgent(has_checkpoints: bool) -> Row {
    let (id, what, bar) = if has_checkpoints {
        (
            "urgent",
            "p99 from submission of an urgent job to its start, 16 busy jobs of 1 ms, checkpoints every 50 us",
            100.0,
        )
    } else {
        (
            "urgent-no-checkpoints",
            "the same with busy jobs of the idle class and without checkpoints",
            1000.0,
        )
    };
    let row = Row::new(id, what, "us", Target::AtMost(bar));
    let row = row.with("refrain", move || {
        let Ok(loaded) = Loaded::new(has_checkpoints) else {
            return f64::NAN;
        };
        let flow = loaded.pool.flow(Entity::new(Class::Iso));
        let sample = |sample| {
            std::thread::sleep(pause(sample));
            let start = Instant::now();
            flow.spawn(move || start.elapsed()).wait().ok()
        };
        p99_us((0..SAMPLES).filter_map(sample).collect())
    });
    if !has_checkpoints {
        return row;
    }
    row.with("tokio", || {
        let Some(runtime) = tokio_runtime(WORKERS) else {
            return f64::NAN;
        };
        load_tokio(&runtime);
        let sample = |sample| {
            std::thread::sleep(pause(sample));
            let start = Instant::now();
            let task = runtime.spawn(async move { start.elapsed() });
            runtime.block_on(task).ok()
        };
        let p99 = p99_us((0..SAMPLES).filter_map(sample).collect());
        runtime.shutdown_background();
        p99
    })
}

fn late() -> Row {
    let what = "p99 of how late a timer of 5 ms fires under that load";
    Row::new("timer-late", what, "us", Target::AtMost(250.0))
        .with("refrain", || {
            let Ok(loaded) = Loaded::new(true) else {
                return f64::NAN;
            };
            let flow = loaded.pool.flow(Entity::new(Class::Iso));
            let delay = Duration::from_millis(5);
            let sample = |_| {
                let (sender, receiver) = mpsc::channel();
                let start = Instant::now();
                loaded.pool.after(delay, &flow, move || {
                    // The receiver waits, so the send succeeds.
                    let _ = sender.send(start.elapsed());
                });
                receiver.recv().ok()?.checked_sub(delay)
            };
            p99_us((0..SAMPLES).filter_map(sample).collect())
        })
        .with("tokio", || {
            let Some(runtime) = tokio_runtime(WORKERS) else {
                return f64::NAN;
            };
            load_tokio(&runtime);
            let delay = Duration::from_millis(5);
            let sample = |_| {
                let task = runtime.spawn(async move {
                    let start = Instant::now();
                    tokio::time::sleep(delay).await;
                    start.elapsed()
                });
                runtime.block_on(task).ok()?.checked_sub(delay)
            };
            let p99 = p99_us((0..SAMPLES).filter_map(sample).collect());
            runtime.shutdown_background();
            p99
        })
}

/// Passes the token on until `left` is used up.
///
/// A task of tokio's ring owns the channel to the next one. For flows the ring is leaked instead,
/// because a reference count per hop (16 ns) would be a cost of this benchmark.
fn hop(ring: &'static [Flow], at: usize, left: u64, sender: mpsc::Sender<()>) {
    if left == 0 {
        // The receiver waits, so the send succeeds.
        let _ = sender.send(());
        return;
    }
    let next = (at + 1) % ring.len();
    ring[next].hand_over(move || hop(ring, next, left - 1, sender));
}

/// The time per hop in nanoseconds of a token around 8 flows that alternate between `workers`
/// workers.
fn ring_of_flows(workers: usize, spin: Duration, hops: u64) -> f64 {
    let mut options = Options::with_workers(workers);
    options.spin = spin;
    let Ok(pool) = Pool::start(options) else {
        return f64::NAN;
    };
    let flow = |index: usize| {
        let only = [CpuId::new(index % workers)].into_iter().collect();
        pool.flow(Entity::new(Class::Normal).with_allowed(only))
    };
    let ring: &[Flow] = Vec::leak((0..8).map(flow).collect());
    let (sender, receiver) = mpsc::channel();
    let start = Instant::now();
    hop(ring, 0, hops, sender);
    match receiver.recv() {
        Ok(()) => start.elapsed().as_nanos() as f64 / hops as f64,
        Err(_) => f64::NAN,
    }
}

fn ring(workers: usize) -> Row {
    let spin = Options::with_workers(1).spin;
    if workers == 1 {
        let what = "a token passed from flow to flow, per hop, one worker";
        return Row::new("ring", what, "ns", Target::AtMost(100.0))
            .with("refrain", move || ring_of_flows(1, spin, HOPS))
            .with("tokio", || ring_of_tasks(1, HOPS));
    }
    let what = "the same, each hop to the other worker";
    Row::new("ring-across", what, "ns", Target::OfSecond(0.8))
        .with("refrain", move || ring_of_flows(workers, spin, HOPS / 50))
        .with("refrain, parking at once", move || {
            ring_of_flows(workers, Duration::ZERO, HOPS / 50)
        })
        .with("tokio", move || ring_of_tasks(workers, HOPS / 50))
}

fn ring_of_tasks(workers: usize, hops: u64) -> f64 {
    const TASKS: usize = 8;
    let Some(runtime) = tokio_runtime(workers) else {
        return f64::NAN;
    };
    let (ends, mut inbox): (Vec<_>, Vec<_>) = (0..TASKS)
        .map(|_| tokio::sync::mpsc::unbounded_channel::<u64>())
        .unzip();
    let (sender, receiver) = mpsc::channel();
    for (index, mut from) in inbox.drain(..).enumerate() {
        let (to, sender) = (ends[(index + 1) % TASKS].clone(), sender.clone());
        runtime.spawn(async move {
            while let Some(left) = from.recv().await {
                if left == 0 {
                    // The receiver waits, so the send succeeds.
                    let _ = sender.send(());
                } else if to.send(left - 1).is_err() {
                    return;
                }
            }
        });
    }
    let start = Instant::now();
    let is_sent = ends[0].send(hops).is_ok();
    let took = (is_sent && receiver.recv().is_ok()).then(|| start.elapsed());
    runtime.shutdown_background();
    took.map_or(f64::NAN, |time| time.as_nanos() as f64 / hops as f64)
}
