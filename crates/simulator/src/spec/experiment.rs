//! A simulation with its policy.

use refrain_policy::Scheme;

use crate::eevdf::Eevdf;
use crate::error::Error;
use crate::report::Report;
use crate::simulation::Simulation;

/// A simulation with the policy to run it under.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Machine, costs, workload, time, seed.
    pub simulation: Simulation,
    /// The policy.
    pub policy: Contender,
}

/// A policy of an experiment.
#[derive(Debug, Clone)]
pub enum Contender {
    /// One that the pool can run as well.
    Pool(Scheme),
    /// Earliest eligible virtual deadline first, a queue for each CPU (Stoica, Abdel-Wahab 1995).
    Eevdf {
        /// The usual request, nanoseconds; 0 counts as 1.
        slice_ns: u64,
    },
}

impl Default for Contender {
    fn default() -> Contender {
        Contender::Pool(Scheme::default())
    }
}

impl Contender {
    /// The usual request of [`Contender::Eevdf`], nanoseconds: Linux's from eight CPUs on.
    pub const EEVDF_SLICE_NS: u64 = 3_000_000;
}

impl Experiment {
    /// Runs the simulation under the policy.
    ///
    /// # Errors
    ///
    /// As [`Simulation::run`].
    pub fn run(&self) -> Result<Report, Error> {
        let simulation = &self.simulation;
        match &self.policy {
            Contender::Pool(scheme) => simulation.run(scheme),
            Contender::Eevdf { slice_ns } => {
                simulation.run(&Eevdf::new(*slice_ns, simulation.topology.len()))
            }
        }
    }
}
