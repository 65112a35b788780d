//! The workload: groups of flows, when work arrives for them, and how long it takes.

use refrain_policy::Entity;
use refrain_policy::topology::CpuMask;

use crate::random::Distribution;

/// The largest number of flows of a simulation.
pub const FLOWS_MAX: usize = 1_000_000;

/// When work arrives for the flows of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// The next job arrives when one is done: a busy loop.
    Always,
    /// Jobs arrive after these gaps, whether or not earlier ones are done: an open system.
    Every(Distribution),
    /// The next job arrives this long after one is done: a closed system with think times.
    After(Distribution),
    /// This many tokens circulate: a finished job makes a job for the next flow of the group.
    Ring(usize),
}

/// A group of equal flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The name in reports.
    pub name: String,
    /// The number of flows.
    pub count: usize,
    /// The entity of each flow.
    pub entity: Entity,
    /// When work arrives.
    pub arrivals: Arrivals,
    /// The length of a job on a CPU of full speed that is alone on its core.
    pub work: Distribution,
    /// The distance between the points at which a job can be stopped, nanoseconds of work. 0:
    /// anywhere; `u64::MAX`: only between jobs.
    pub checkpoint_ns: u64,
    /// Whether a slice ends only between jobs, as for closures in the pool. At checkpoints such a
    /// job only lets more urgent flows run on top of it.
    pub is_whole: bool,
    /// Other CPUs that its flows may run on, from these times on, nanoseconds: processor sets that
    /// move at run time. A time may occur once.
    pub confinements: Vec<(u64, CpuMask)>,
    /// The data that must be in the cache for full speed, KiB.
    pub working_set_kib: u64,
}

impl Group {
    /// A flow that always has work, in jobs of one millisecond, and can be stopped anywhere.
    pub fn cpu_bound(name: &str, entity: Entity) -> Group {
        Group {
            name: name.to_owned(),
            count: 1,
            entity,
            arrivals: Arrivals::Always,
            work: Distribution::Fixed(1_000_000),
            checkpoint_ns: 0,
            is_whole: false,
            confinements: Vec::new(),
            working_set_kib: 0,
        }
    }

    /// The same group with this number of flows.
    #[must_use]
    pub fn times(mut self, count: usize) -> Group {
        self.count = count;
        self
    }

    /// The same group with other arrivals and work.
    #[must_use]
    pub fn with_work(mut self, arrivals: Arrivals, work: Distribution) -> Group {
        (self.arrivals, self.work) = (arrivals, work);
        self
    }

    /// The same group with checkpoints at this distance.
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoint_ns: u64) -> Group {
        self.checkpoint_ns = checkpoint_ns;
        self
    }
}
