//! How fast MD5 is here: one input, and many of the same length side by side.
//!
//! ```sh
//! cargo run --release -p refrain-protect --example md5_speed
//! ```
#![allow(clippy::print_stdout)]

use std::time::Instant;

use refrain_protect::md5::{Md5, md5_many, update_many};

const INPUT_BYTES: usize = 16 << 10;
const ROUNDS: usize = 2000;
const RUNS: usize = 7;

fn main() {
    let bytes: Vec<u8> = (0..40 * (INPUT_BYTES + 64))
        .map(|index| ((index * index) >> 7) as u8)
        .collect();
    let inputs: Vec<&[u8]> = bytes
        .chunks(INPUT_BYTES + 64)
        .map(|input| &input[..INPUT_BYTES])
        .collect();
    println!(
        "one input           {:>7.0} MB/s",
        best_rate(ROUNDS * INPUT_BYTES, || {
            let mut hash = Md5::new();
            (0..ROUNDS).for_each(|_| hash.update(inputs[0]));
            std::hint::black_box(hash.finish());
        })
    );
    for count in [2, 3, 4, 8, 9, 12, 16, 17, 24, 32, 40] {
        println!(
            "{count:>3} inputs at once  {:>7.0} MB/s",
            best_rate(ROUNDS * INPUT_BYTES, || {
                let mut hashes = vec![Md5::new(); count];
                for _ in 0..ROUNDS / count {
                    update_many(hashes.iter_mut().zip(inputs.iter().copied()));
                }
                std::hint::black_box(hashes);
            })
        );
    }
    for length in [0, 100, 1000, 4096] {
        let tiny: Vec<&[u8]> = inputs.iter().map(|input| &input[..length]).collect();
        let rate = best_rate(40 * 500, || {
            (0..500).for_each(|_| drop(std::hint::black_box(md5_many(&tiny))));
        });
        println!(
            "40 inputs of {length:>4} bytes {:>6.1} million a second",
            rate
        );
    }
}

/// Millions of `units` a second, the best of a few runs.
fn best_rate(units: usize, work: impl Fn()) -> f64 {
    let seconds = (0..RUNS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    units as f64 / seconds.fold(f64::INFINITY, f64::min) / 1e6
}
