//! Rows about locks: the project's, parking_lot's and the standard library's.

use std::sync::PoisonError;
use std::time::Instant;

use refrain_sync::{LockProfiling, profile_locks};

use super::row::{Row, Target};

const PAIRS: u64 = 2_000_000;

pub fn rows() -> Vec<Row> {
    vec![
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
    ]
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
