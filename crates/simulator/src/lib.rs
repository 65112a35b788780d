//! The policy on machines that are not there: a seeded discrete-event simulator.
//!
//! It drives the same [`Policy`] as the pool, on any [`Topology`], with time, queues, checkpoints and costs as plain numbers. The
//! same seed gives the same run. What it is good for: shares, waiting times and placement on machines one does not have. What
//! it leaves out stands in [`Costs`]: whatever has no number there costs nothing (interrupts, other programs, memory bandwidth).
//!
//! ```
//! use refrain_policy::{Bfs, Class, Entity, Nice};
//! use refrain_simulator::{Costs, Group, Simulation};
//! use refrain_policy::topology::Topology;
//!
//! let simulation = Simulation {
//!     topology: Topology::from_spec("2c4t")?,
//!     costs: Costs::none(),
//!     groups: vec![
//!         Group::hog("kind", Entity::new(Class::Normal).with_nice(Nice::new(19))).times(4),
//!         Group::hog("plain", Entity::new(Class::Normal)).times(4),
//!     ],
//!     span_ns: 5_000_000_000,
//!     seed: 1,
//! };
//! let report = simulation.run(&Bfs::default())?;
//! let ratio = report.share(1) / report.share(0);
//! assert!((ratio / (5089.0 / 836.0) - 1.0).abs() < 0.05);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod costs;
mod engine;
mod machine;
mod random;
mod report;
mod running;
mod spec;
mod workload;

#[cfg(test)]
#[path = "property_tests.rs"]
mod properties;
#[cfg(test)]
#[path = "published_tests.rs"]
mod published;

pub use costs::{Costs, Governor, PERMILLE};
pub use random::{Distribution, QUANTILES_PERMILLE, Random};
pub use report::{GroupReport, Report, Times};
pub use spec::{Experiment, SpecError};
pub use workload::{Arrivals, Group};

use refrain_policy::Policy;
use refrain_policy::topology::Topology;

/// Flows that a simulation can have.
pub const FLOWS_MAX: usize = 1_000_000;

/// Why a simulation gives no report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// More flows than [`FLOWS_MAX`].
    TooManyFlows {
        /// How many were asked for.
        flows: usize,
    },
    /// Too much happens in the time asked for.
    TooManyEvents {
        /// How many are simulated at most.
        max: u64,
        /// Simulated time by then, nanoseconds.
        reached_ns: u64,
    },
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::TooManyFlows { flows } => {
                write!(
                    formatter,
                    "{flows} flows; at most {FLOWS_MAX} can be simulated"
                )
            }
            Error::TooManyEvents { max, reached_ns } => write!(
                formatter,
                "more than {max} events within {} ms of simulated time",
                reached_ns / 1_000_000
            ),
        }
    }
}

impl std::error::Error for Error {}

/// An experiment: machine, costs, work, time and seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// The machine.
    pub topology: Topology,
    /// What things cost on it.
    pub costs: Costs,
    /// Who works.
    pub groups: Vec<Group>,
    /// For how long, nanoseconds.
    pub span_ns: u64,
    /// Chooses arrivals, work and wake-up times.
    pub seed: u64,
}

impl Simulation {
    /// Runs the experiment under a policy.
    ///
    /// # Errors
    ///
    /// [`Error`] when there is more to simulate than can be.
    pub fn run(&self, policy: &impl Policy) -> Result<Report, Error> {
        let flows = self
            .groups
            .iter()
            .fold(0usize, |sum, group| sum.saturating_add(group.count));
        if flows > FLOWS_MAX {
            return Err(Error::TooManyFlows { flows });
        }
        let topology = self.topology.clone();
        engine::Engine::new(policy, topology, &self.costs, &self.groups, self.seed)
            .run(self.span_ns)
    }
}
