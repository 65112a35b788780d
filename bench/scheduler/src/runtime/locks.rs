//! Rows about locks: the project's, parking_lot's and the standard library's.

use std::hint::black_box;
use std::sync::{Barrier, PoisonError};
use std::time::Instant;

use refrain_sync::{LockProfiling, profile_locks};

use super::row::{Row, Target};

const PAIRS: u64 = 2_000_000;
const OPERATIONS_PER_THREAD: u64 = 400_000;
/// One in this many operations writes.
const READS_TO_A_WRITE: u64 = 20;

pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        uncontended(
            "mutex",
            "mutex, lock and unlock, not contended",
            LockProfiling::Off,
        ),
        uncontended(
            "mutex-contested",
            "the same with contested locks profiled",
            LockProfiling::Contested,
        ),
        uncontended(
            "mutex-full",
            "the same with all locks profiled",
            LockProfiling::Full,
        ),
    ];
    rows.extend([2, 4, 8, 16].map(readers));
    rows
}

fn uncontended(id: &'static str, what: &'static str, profiling: LockProfiling) -> Row {
    let target = match profiling {
        LockProfiling::Off => Target::OfSecond(1.05),
        _ => Target::None,
    };
    Row::new(id, what, "ns", target)
        .with("refrain", move || {
            profile_locks(profiling);
            let mutex = refrain_sync::Mutex::new(0_u64);
            let ns = pairs(|| *mutex.lock() += 1);
            profile_locks(LockProfiling::Off);
            ns
        })
        .with("parking_lot", || {
            let mutex = parking_lot::Mutex::new(0_u64);
            pairs(|| *mutex.lock() += 1)
        })
        .with("std", || {
            let mutex = std::sync::Mutex::new(0_u64);
            pairs(|| *mutex.lock().unwrap_or_else(PoisonError::into_inner) += 1)
        })
}

fn pairs(pair: impl Fn()) -> f64 {
    let start = Instant::now();
    for _ in 0..PAIRS {
        pair();
    }
    start.elapsed().as_nanos() as f64 / PAIRS as f64
}

fn readers(threads: usize) -> Row {
    let id = match threads {
        2 => "readers-2",
        4 => "readers-4",
        8 => "readers-8",
        _ => "readers-16",
    };
    let what = "reader-writer lock, 95 % reads, time over the operations of all threads";
    Row::new(id, what, "ns", Target::OfSecond(1.0))
        .with("refrain", move || {
            let lock = refrain_sync::RwLock::new([0_u64; 8]);
            mixed(
                threads,
                || lock.read().iter().sum(),
                || lock.write().iter_mut().for_each(|word| *word += 1),
            )
        })
        .with("parking_lot", move || {
            let lock = parking_lot::RwLock::new([0_u64; 8]);
            mixed(
                threads,
                || lock.read().iter().sum(),
                || lock.write().iter_mut().for_each(|word| *word += 1),
            )
        })
        .with("std", move || {
            let lock = std::sync::RwLock::new([0_u64; 8]);
            mixed(
                threads,
                || {
                    lock.read()
                        .unwrap_or_else(PoisonError::into_inner)
                        .iter()
                        .sum()
                },
                || {
                    let mut words = lock.write().unwrap_or_else(PoisonError::into_inner);
                    words.iter_mut().for_each(|word| *word += 1);
                },
            )
        })
}

fn mixed(threads: usize, read: impl Fn() -> u64 + Sync, write: impl Fn() + Sync) -> f64 {
    let start_line = Barrier::new(threads);
    let work = || {
        start_line.wait();
        let start = Instant::now();
        for number in 0..OPERATIONS_PER_THREAD {
            match number % READS_TO_A_WRITE {
                0 => write(),
                _ => _ = black_box(read()),
            }
        }
        (start, Instant::now())
    };
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().filter_map(|thread| thread.join().ok());
        ended.collect()
    });
    let begin = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    let (Some(begin), Some(end)) = (begin, end) else {
        return f64::NAN;
    };
    let operations = OPERATIONS_PER_THREAD * threads as u64;
    (end - begin).as_nanos() as f64 / operations as f64
}
