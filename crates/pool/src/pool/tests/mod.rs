//! The pool as its users see it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]

mod aside;
mod flows;
mod locks;
mod stress;
mod tenants;
#[cfg(target_os = "linux")]
mod thread_state;
mod timers;

use std::time::Duration;

use refrain_policy::topology::CpuId;
use refrain_policy::{Class, Entity, Latency};

use super::*;

fn pool(workers: usize) -> Pool {
    Pool::start(Options::with_workers(workers)).unwrap()
}

fn normal(pool: &Pool) -> Flow {
    pool.flow(Entity::new(Class::Normal))
}

fn urgent(pool: &Pool) -> Flow {
    pool.flow(Entity::new(Class::Iso))
}

/// Waits until `condition` holds; fails after two minutes.
fn eventually(condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "the condition never became true"
        );
        std::thread::yield_now();
    }
}
