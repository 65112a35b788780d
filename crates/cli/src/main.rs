//! The command line of Refrain: one binary, several faces (`refrain VERB`, `rfn`, `unrfn`, `rfncat`, and lrzip's names).
//!
//! Reading path: [`run`] (a table from verb to function), [`faces`] (who are we, by `argv[0]`),
//! [`args`] (the one declaration of all flags), [`verbs`] (one file per verb), [`report`] (what is
//! told to people and scripts), [`exit`] (what is told to the shell).

#![forbid(unsafe_code)]

mod args;
mod bench;
mod exit;
mod faces;
mod failure;
mod files;
mod generate;
#[cfg(feature = "lrzip")]
mod lrzip;
mod messages;
mod names;
mod password;
mod patience;
mod profile;
mod progress;
mod report;
mod run;
mod session;
mod units;
mod verbs;

fn main() -> std::process::ExitCode {
    run::run(std::env::args_os().collect())
}
