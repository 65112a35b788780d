#![doc = include_str!("../README.md")]
//!
//! # What it predicts
//!
//! It drives the same [`Policy`](refrain_policy::Policy) as the pool, on any
//! [`Topology`](refrain_policy::topology::Topology), with time, queues, checkpoints and costs as
//! plain numbers. The same seed gives the same run. It predicts shares, waiting times and placement
//! on machines that are not available. [`Costs`] lists what is modeled: everything else costs
//! nothing (interrupts, other programs, memory bandwidth).

mod costs;
mod eevdf;
mod engine;
mod error;
mod random;
mod report;
#[cfg(feature = "cache")]
pub mod shared_cache;
mod simulation;
mod spec;
mod workload;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod published_tests;

pub use costs::{Costs, Governor, PERMILLE};
pub use error::Error;
pub use random::{Distribution, QUANTILES_PERMILLE, Random};
pub use report::{GroupReport, Report, Times};
pub use simulation::Simulation;
pub use spec::{Contender, Experiment, SpecError};
pub use workload::{Arrivals, FLOWS_MAX, Group};
