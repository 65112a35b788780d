//! A simulation with its policy.

use refrain_policy::Scheme;

use crate::error::Error;
use crate::report::Report;
use crate::simulation::Simulation;

/// A simulation with the policy to run it under.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Machine, costs, workload, time, seed.
    pub simulation: Simulation,
    /// The policy.
    pub policy: Scheme,
}

impl Experiment {
    /// Runs the simulation under the policy.
    ///
    /// # Errors
    ///
    /// As [`Simulation::run`].
    pub fn run(&self) -> Result<Report, Error> {
        self.simulation.run(&self.policy)
    }
}
