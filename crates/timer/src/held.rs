//! The shards of several workers, locked together.

use std::collections::BTreeSet;

use super::TimerId;
use super::shard::Shard;
use super::system::{Notify, TimerSystem};
use crate::sync::ShortGuard;

/// The shards of several workers, locked in the order of workers: so two who want some of the same wait for each
/// other in one direction only.
pub(super) struct Held<'a, P> {
    guards: Vec<(usize, ShortGuard<'a, Shard<P>>)>,
}

impl<'a, P> Held<'a, P> {
    pub(super) fn lock<N: Notify>(
        system: &'a TimerSystem<P, N>,
        workers: BTreeSet<usize>,
    ) -> Held<'a, P> {
        let in_order = workers.into_iter();
        let guards = in_order.map(|worker| (worker, system.worker(worker).lock()));
        Held {
            guards: guards.collect(),
        }
    }

    pub(super) fn contains(&self, worker: usize) -> bool {
        self.guards
            .binary_search_by_key(&worker, |&(held, _)| held)
            .is_ok()
    }

    /// The shard of a worker that is held.
    pub(super) fn shard(&mut self, worker: usize) -> &mut Shard<P> {
        let index = self.index(worker);
        &mut self.guards[index].1
    }

    /// Ends the timer `id`, which is pending at `place`.
    pub(super) fn cancel(&mut self, id: TimerId, place: TimerId) -> Option<P> {
        let taken = self.shard(place.worker).cancel(place.key)?;
        if place != id {
            self.shard(id.worker).forget(id.key);
        }
        Some(taken.payload)
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = &Shard<P>> {
        self.guards.iter().map(|(_, shard)| &**shard)
    }

    /// The position of a held worker's shard in [`Held::shards`].
    pub(super) fn index(&self, worker: usize) -> usize {
        debug_assert!(self.contains(worker));
        self.guards.partition_point(|&(held, _)| held < worker)
    }
}
