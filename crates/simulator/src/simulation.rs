//! A simulation: machine, costs, workload, time and seed.

use refrain_policy::Policy;
use refrain_policy::topology::Topology;

use crate::costs::Costs;
use crate::engine::Engine;
use crate::error::Error;
use crate::report::Report;
use crate::workload::{FLOWS_MAX, Group};

/// A machine with a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// The machine.
    pub topology: Topology,
    /// The costs of operations on it.
    pub costs: Costs,
    /// The workload.
    pub groups: Vec<Group>,
    /// The simulated time, nanoseconds.
    pub span_ns: u64,
    /// The seed of arrivals, work and wake-up times.
    pub seed: u64,
}

impl Simulation {
    /// Runs the simulation under a policy.
    ///
    /// # Errors
    ///
    /// [`Error`] if there are too many flows or events.
    pub fn run(&self, policy: &impl Policy) -> Result<Report, Error> {
        let flows = self
            .groups
            .iter()
            .fold(0usize, |sum, group| sum.saturating_add(group.count));
        if flows > FLOWS_MAX {
            return Err(Error::TooManyFlows { flows });
        }
        let topology = self.topology.clone();
        Engine::new(policy, topology, &self.costs, &self.groups, self.seed).run(self.span_ns)
    }
}
