//! Benchmarks and predictions, for development only: `cargo run --release -- --help`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // A command-line program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod giant;
mod predict;
mod runtime;
mod sim;

/// Compares parts of Refrain with alternatives.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Compare the pool, timers and queues with rayon, tokio, crossbeam and others
    Runtime(runtime::Arguments),
    /// Generate an archive of millions of entries and terabytes, with a sparse store
    Giant(giant::Arguments),
    /// Simulate a workload under a scheduling policy
    Sim(sim::Arguments),
    /// Measure the scheduling costs of this machine and print them as a line for sim
    Calibrate(predict::CalibrateArguments),
    /// Compare simulated experiments with the same experiments on the pool
    Predict(predict::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Runtime(arguments) => runtime::run(&arguments),
        Verb::Giant(arguments) => giant::run(&arguments),
        Verb::Sim(arguments) => sim::run(&arguments),
        Verb::Calibrate(arguments) => predict::calibrate(&arguments),
        Verb::Predict(arguments) => predict::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("refrain-bench: {message}");
            ExitCode::FAILURE
        }
    }
}
