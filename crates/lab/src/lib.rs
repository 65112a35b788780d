#![doc = include_str!("../README.md")]
//!
//! # Terms
//!
//! An [`Experiment`] is one question, in a file of its own. It yields an [`Outcome`]: tables whose
//! columns have units, charts of them, and findings in words. [`report`] writes outcomes as text
//! and JSON, [`page()`](page::html) as one self-contained page. What later runs need goes into a
//! [`Profile`] of the machine; [`compare()`](compare::compare) shows its benefit.
//!
//! The numbers are what this machine did while the experiments ran. If something could not be
//! measured, the cell says why; it is never zero. What was not seen is reported as "not seen in N",
//! never as impossible.
//!
//! The crate does not create threads itself (`gang.rs`) and reads only the context's clock.
//! Temporary files lose their name before they are used, so nothing is left behind, however a run
//! ends.

#![forbid(unsafe_code)]

pub mod compare;
mod context;
mod error;
mod experiment;
mod experiments;
mod file_system;
mod gang;
mod machine;
mod outcome;
pub mod page;
mod profile;
mod random;
pub mod report;
mod statistics;
mod units;
mod unnamed_files;

pub use context::Context;
pub use error::{Error, Result};
pub use experiment::Experiment;
pub use experiments::{ALL, OF_PROFILE, by_name};
pub use machine::Machine;
pub use outcome::{Cell, Chart, Column, Findings, Measured, Outcome, Section, Unit};
pub use profile::{Profile, ProfileError};
pub use report::{Report, run};
