//! How many processors the process may use.

use std::sync::OnceLock;

use refrain_policy::topology::Machine;

/// The number of processors that this process may use, as of the first call: those of its affinity
/// mask and cpuset, and no more than its control groups' quota of processor time, rounded up.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(Machine::discover_workers)
}
