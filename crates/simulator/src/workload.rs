//! Who works, when, and for how long.

use refrain_policy::Entity;

use super::Distribution;

/// When the flows of a group get work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// The next job is there when one is done: a busy loop.
    Always,
    /// Jobs arrive after these gaps, done or not: clients that do not wait (an open system).
    Every(Distribution),
    /// The next job arrives so long after one is done: clients that think (a closed system).
    After(Distribution),
    /// So many tokens go round: a job done is a job for the next flow of the group.
    Ring(usize),
}

/// Flows that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// For the report.
    pub name: String,
    /// How many.
    pub count: usize,
    /// What the policy is told of each.
    pub entity: Entity,
    /// When they get work.
    pub arrivals: Arrivals,
    /// How long a job takes on a CPU of full speed that is alone on its core.
    pub work: Distribution,
    /// How far apart the points are at which a job can be interrupted, nanoseconds of work; 0: anywhere, `u64::MAX`: only
    /// between jobs.
    pub checkpoint_ns: u64,
    /// A slice ends between jobs only, as with closures of the pool; at checkpoints a job only lets more urgent flows go first.
    pub is_whole: bool,
    /// What has to be in the cache for full speed, KiB.
    pub working_set_kib: u64,
}

impl Group {
    /// One flow that always works, in jobs of a millisecond, and may be interrupted anywhere.
    pub fn hog(name: &str, entity: Entity) -> Group {
        Group {
            name: name.to_owned(),
            count: 1,
            entity,
            arrivals: Arrivals::Always,
            work: Distribution::Fixed(1_000_000),
            checkpoint_ns: 0,
            is_whole: false,
            working_set_kib: 0,
        }
    }

    /// The same, so many.
    #[must_use]
    pub fn times(mut self, count: usize) -> Group {
        self.count = count;
        self
    }

    /// The same with other arrivals and work.
    #[must_use]
    pub fn doing(mut self, arrivals: Arrivals, work: Distribution) -> Group {
        (self.arrivals, self.work) = (arrivals, work);
        self
    }

    /// The same with checkpoints this far apart.
    #[must_use]
    pub fn checking_each(mut self, checkpoint_ns: u64) -> Group {
        self.checkpoint_ns = checkpoint_ns;
        self
    }
}
