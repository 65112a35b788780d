//! A seeded discrete-event simulator that drives the scheduling policy on any machine.
//!
//! It drives the same [`Policy`](refrain_policy::Policy) as the pool, on any
//! [`Topology`](refrain_policy::topology::Topology), with time, queues, checkpoints and costs as
//! plain numbers. The same seed gives the same run. It predicts shares, waiting times and placement
//! on machines that are not available. [`Costs`] lists what is modeled: everything else costs
//! nothing (interrupts, other programs, memory bandwidth). The crate depends on `refrain-policy`
//! only. `README.md` describes the model and how well it predicts.
//!
//! ```
//! use refrain_policy::topology::Topology;
//! use refrain_policy::{Bfs, Class, Entity, Nice};
//! use refrain_simulator::{Costs, Group, Simulation};
//!
//! let normal = Entity::new(Class::Normal);
//! let simulation = Simulation {
//!     topology: Topology::from_spec("2c4t")?,
//!     costs: Costs::none(),
//!     groups: vec![
//!         Group::cpu_bound("nice 19", normal.with_nice(Nice::new(19))).times(4),
//!         Group::cpu_bound("nice 0", normal).times(4),
//!     ],
//!     span_ns: 5_000_000_000,
//!     seed: 1,
//! };
//! let report = simulation.run(&Bfs::default())?;
//! // Shares are inversely proportional to the deadline offsets of the nice values.
//! let ratio = report.share(1) / report.share(0);
//! assert!((ratio / (5089.0 / 836.0) - 1.0).abs() < 0.05);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
