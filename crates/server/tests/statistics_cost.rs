//! The cost of recording, measured by
//! `cargo test --release -p refrain-server --test statistics_cost -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use refrain_server::{Operation, Outcome, Statistics};

const CALLS: u64 = 5_000_000;

#[test]
#[ignore = "a measurement"]
fn recording_takes_nanoseconds() {
    for threads in [1, 2] {
        let statistics = Statistics::new();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for call in 0..CALLS {
                        let began_ns = statistics.now_ns();
                        let outcome = Outcome::Bytes(call & 4095);
                        statistics.record(Operation::HttpGet, began_ns, outcome);
                    }
                });
            }
        });
        let each_ns = started.elapsed().as_nanos() as f64 / CALLS as f64;
        println!(
            "{threads} threads: {each_ns:.1} ns for each call, two readings of the clock included"
        );
        let counted = statistics
            .snapshot()
            .swap_remove(Operation::HttpGet as usize);
        assert_eq!(counted.times.count(), CALLS * threads);
        // One hundredth of the fastest read over a socket, some 20 µs.
        assert!(each_ns < 2000.0, "{each_ns}");
    }
}
