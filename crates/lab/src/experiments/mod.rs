//! The experiments, one file each.

mod atomicity;
mod bandwidth;
mod cache;
mod disk;
mod locks;
mod matrix;
mod pages;
mod pipe;
mod ring;
mod sharing;
mod timers;
mod topology;
mod walk;

use refrain_pool::Pages;

use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;

/// All experiments, in the order they run.
pub const ALL: [&dyn Experiment; 12] = [
    &topology::Topology,
    &cache::Cache,
    &bandwidth::Bandwidth,
    &matrix::Matrix,
    &pages::Pages,
    &sharing::Sharing,
    &ring::Ring,
    &locks::Locks,
    &timers::Timers,
    &pipe::Pipe,
    &disk::Disk,
    &atomicity::Atomicity,
];

/// The experiment with this name.
pub fn by_name(name: &str) -> Option<&'static dyn Experiment> {
    ALL.into_iter().find(|experiment| experiment.name() == name)
}

/// The experiments from which a profile is made.
pub const OF_PROFILE: [&str; 4] = ["pages", "ring", "locks", "pipe"];

/// The bytes per second through a pipe of this capacity, with writes like the engine's; the reason
/// if the system refuses it.
pub(crate) fn pipe_rate(
    context: &Context,
    capacity_bytes: usize,
) -> Result<std::result::Result<f64, String>> {
    pipe::rate(
        context,
        capacity_bytes,
        pipe::USUAL_WRITE_BYTES,
        context.time(50, 250),
    )
}

/// The acquisitions per second of a contended pool lock with this limit on spinning.
pub(crate) fn contended_rate(context: &Context, spins_max: u32) -> Result<f64> {
    locks::contended_rate(context, spins_max)
}

/// The nanoseconds of a random access to a table of this size on these pages.
pub(crate) fn access_to_table_ns(context: &Context, pages: Pages, table_bytes: u64) -> Result<f64> {
    let table = walk::cycle(context, pages, table_bytes, pages::PAGE_STEP_WORDS)?;
    walk::access_ns(context, &table, context.time(50, 250))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_a_quick_run_takes_less_than_twenty_seconds() {
        let mut names: Vec<_> = ALL.iter().map(|experiment| experiment.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        let seconds = |is_quick| {
            ALL.iter()
                .map(move |one| one.seconds(is_quick))
                .sum::<f64>()
        };
        assert!(seconds(true) < 20.0 && seconds(true) < seconds(false));
        for name in OF_PROFILE {
            assert!(by_name(name).is_some(), "{name}");
        }
        assert!(by_name("nothing").is_none());
        for experiment in ALL {
            assert!(
                !experiment.measures().ends_with('.'),
                "{}",
                experiment.name()
            );
            assert!(
                experiment.explains().ends_with('.'),
                "{}",
                experiment.name()
            );
        }
    }
}
