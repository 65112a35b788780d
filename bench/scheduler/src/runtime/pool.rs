//! Rows about the pool: urgent work and timers under load.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use refrain_policy::{Class, Entity};

use super::load::{Loaded, LoadedRayon, LoadedTokio, Tokio, WORKERS};
use super::row::{Row, Target};

/// The number of samples behind each 99th percentile.
const SAMPLES: u64 = 300;
/// The time for the samples of a contender that is very late, and how late it counts at most.
const SAMPLING_MAX: Duration = Duration::from_secs(4);
const LATE_MAX: Duration = Duration::from_secs(1);

pub fn rows() -> Vec<Row> {
    vec![urgent(true), urgent(false), late()]
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
            30.0,
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
        return row.with("rayon under SCHED_IDLE, a second rayon pool", || {
            let (Some(_loaded), Ok(pool)) = (
                LoadedRayon::new(),
                rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build(),
            ) else {
                return f64::NAN;
            };
            let sample = |sample| {
                std::thread::sleep(pause(sample));
                let (sender, receiver) = mpsc::channel();
                let start = Instant::now();
                pool.spawn(move || _ = sender.send(start.elapsed()));
                receiver.recv().ok()
            };
            p99_us((0..SAMPLES).filter_map(sample).collect())
        });
    }
    Tokio::ALL.into_iter().fold(row, |row, (name, tokio)| {
        row.with(name, move || {
            let Some(loaded) = LoadedTokio::new(tokio) else {
                return f64::NAN;
            };
            let sample = |sample| {
                std::thread::sleep(pause(sample));
                let start = Instant::now();
                let task = loaded.runtime.spawn(async move { start.elapsed() });
                loaded.runtime.block_on(task).ok()
            };
            let p99 = p99_us((0..SAMPLES).filter_map(sample).collect());
            loaded.end();
            p99
        })
    })
}

fn late() -> Row {
    let what = "p99 of how late a timer of 5 ms fires under that load";
    let row = Row::new("timer-late", what, "us", Target::AtMost(100.0));
    let row = row.with("refrain", || {
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
    });
    Tokio::ALL.into_iter().fold(row, |row, (name, tokio)| {
        row.with(name, move || {
            let Some(loaded) = LoadedTokio::new(tokio) else {
                return f64::NAN;
            };
            let delay = Duration::from_millis(5);
            let sample = |_| {
                let (sender, receiver) = mpsc::channel();
                loaded.runtime.spawn(async move {
                    let start = Instant::now();
                    tokio::time::sleep(delay).await;
                    let _ = sender.send(start.elapsed());
                });
                // By default it may never look at its timers under this load.
                let elapsed = receiver.recv_timeout(LATE_MAX).unwrap_or(LATE_MAX);
                elapsed.checked_sub(delay)
            };
            let start = Instant::now();
            let samples = (0..SAMPLES).take_while(|_| start.elapsed() < SAMPLING_MAX);
            let p99 = p99_us(samples.filter_map(sample).collect());
            loaded.end();
            p99
        })
    })
}
