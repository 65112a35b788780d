//! Measurements that are no part of the product: `cargo run --release -p refrain-bench -- --help`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // It is a program for people.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod predict;
mod runtime;
mod sim;

/// Measures Refrain's parts beside others.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// The runtime beside rayon, tokio, crossbeam and others, row by row
    Runtime(runtime::Arguments),
    /// A policy on a simulated machine
    Sim(sim::Arguments),
    /// What things cost on this machine, as a line for sim
    Calibrate(predict::CalibrateArguments),
    /// The same experiments simulated and on the pool: how well they agree
    Predict(predict::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Runtime(arguments) => runtime::run(&arguments),
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
