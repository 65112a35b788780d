//! The lanes of a crew.

use refrain_policy::{Entity, Latency, Nice};

/// What a job does and how urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Computing, before all other jobs: something waits for the result.
    Urgent,
    /// Computing.
    Normal,
    /// Computing, mostly when there is nothing else to do.
    Background,
    /// Blocking reads, on a separate thread, so that a slow pipe never blocks a compute worker. One
    /// runs at a time; a job that waits in
    /// [`suspend_until_readable`](crate::suspend_until_readable) lets others run.
    Input,
}

impl Lane {
    /// The lanes that compute, the most urgent first.
    pub(crate) const COMPUTING: [Lane; 3] = [Lane::Urgent, Lane::Normal, Lane::Background];

    /// The properties of the jobs of this lane in a crew with the properties of `entity`.
    pub(crate) fn entity(self, entity: Entity) -> Entity {
        let (nice, latency) = match self {
            Lane::Urgent => (entity.nice.value() - 5, entity.latency),
            Lane::Normal | Lane::Input => return entity,
            Lane::Background => (entity.nice.value() + 10, Latency::Insensitive),
        };
        entity.with_nice(Nice::new(nice)).with_latency(latency)
    }
}
