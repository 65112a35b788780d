//! The shards of several workers, locked together.

use std::collections::BTreeSet;

use crate::callbacks::Notify;
use crate::shard::Shard;
use crate::timer_id::TimerId;
use crate::workers::Workers;
use refrain_sync::ShortGuard;

/// The locked shards of several workers. They are locked in the order of worker numbers, which
/// excludes deadlocks between two such sets.
pub(crate) struct LockedShards<'a, P> {
    guards: Vec<(usize, ShortGuard<'a, Shard<P>>)>,
}

impl<'a, P> LockedShards<'a, P> {
    pub(crate) fn lock<N: Notify>(
        all: &'a Workers<P, N>,
        workers: BTreeSet<usize>,
    ) -> LockedShards<'a, P> {
        let in_order = workers.into_iter();
        let guards = in_order.map(|worker| (worker, all.worker(worker).lock()));
        LockedShards {
            guards: guards.collect(),
        }
    }

    pub(crate) fn contains(&self, worker: usize) -> bool {
        self.guards
            .binary_search_by_key(&worker, |&(locked, _)| locked)
            .is_ok()
    }

    pub(crate) fn shard(&mut self, worker: usize) -> &mut Shard<P> {
        let index = self.index(worker);
        &mut self.guards[index].1
    }

    /// Cancels the timer `id`, which is pending at `location`.
    pub(crate) fn cancel(&mut self, id: TimerId, location: TimerId) -> Option<P> {
        let payload = self
            .shard(location.worker)
            .cancel(location.key, location.deadline_ns)?;
        if location != id {
            self.shard(id.worker).free_migrated(id.key);
        }
        Some(payload)
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = &Shard<P>> {
        self.guards.iter().map(|(_, shard)| &**shard)
    }

    pub(crate) fn index(&self, worker: usize) -> usize {
        debug_assert!(self.contains(worker));
        self.guards.partition_point(|&(locked, _)| locked < worker)
    }
}
