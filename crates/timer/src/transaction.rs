//! A batch of additions and cancellations that takes effect as a whole or not at all, together with
//! a change of the caller's own state.

use std::collections::{BTreeMap, BTreeSet};

use crate::callbacks::Notify;
use crate::locked_shards::LockedShards;
use crate::shard::{Lookup, Shard};
use crate::timer_id::TimerId;
use crate::workers::Workers;

/// Additions and cancellations that are only recorded until [`Transaction::commit`]. Dropping the
/// transaction discards them.
#[must_use = "nothing happens before `commit`"]
pub struct Transaction<'a, P, N> {
    workers: &'a Workers<P, N>,
    additions: Vec<AddRequest<P>>,
    cancellations: Vec<TimerId>,
}

struct AddRequest<P> {
    worker: usize,
    deadline_ns: u64,
    payload: P,
}

/// The result of a committed transaction.
#[derive(Debug, PartialEq, Eq)]
pub struct Committed<P, R> {
    /// The ids of the additions, in the order of the calls.
    pub ids: Vec<TimerId>,
    /// The payloads of the cancelled timers, in the order of the calls.
    pub cancelled: Vec<P>,
    /// What the caller's change returned.
    pub value: R,
}

/// Why a transaction was aborted.
#[derive(Debug, PartialEq, Eq)]
pub enum AbortReason<E> {
    /// This timer was to be cancelled but had ended before.
    NotPending(TimerId),
    /// The caller's change returned an error.
    Change(E),
}

/// An aborted transaction. It had no effect.
#[derive(Debug, PartialEq, Eq)]
pub struct Aborted<P, E> {
    /// Why it was aborted.
    pub reason: AbortReason<E>,
    /// The payloads of the additions, in the order of the calls.
    pub payloads: Vec<P>,
}

impl<'a, P, N: Notify> Transaction<'a, P, N> {
    pub(crate) fn new(workers: &'a Workers<P, N>) -> Self {
        Transaction {
            workers,
            additions: Vec::new(),
            cancellations: Vec::new(),
        }
    }

    /// Adds a timer at `worker` that is due at `deadline_ns`.
    pub fn add(&mut self, worker: usize, deadline_ns: u64, payload: P) -> &mut Self {
        self.additions.push(AddRequest {
            worker,
            deadline_ns,
            payload,
        });
        self
    }

    /// Cancels a timer. The transaction is aborted if the timer is not pending.
    pub fn cancel(&mut self, id: TimerId) -> &mut Self {
        self.cancellations.push(id);
        self
    }

    /// Applies everything atomically: no other thread sees, fires or cancels a part of it.
    ///
    /// `change` is called with the ids of the additions when only its own error can still abort the
    /// transaction. It runs under the locks of all workers concerned, so its effects and the
    /// transaction's are one step for every thread that uses the timers: no addition fires before
    /// `change` has returned, and no cancelled timer after. It must be short and must not use the
    /// timer system, which would deadlock. A panic in it aborts the transaction.
    ///
    /// # Errors
    /// [`Aborted`] if a timer to cancel is not pending or `change` returns an error.
    pub fn commit<R, E>(
        self,
        change: impl FnOnce(&[TimerId]) -> Result<R, E>,
    ) -> Result<Committed<P, R>, Aborted<P, E>> {
        let (mut locked, locations) = match self.lock_all() {
            Ok(locked) => locked,
            Err(id) => return Err(self.aborted(AbortReason::NotPending(id))),
        };
        let ids = self.upcoming_ids(&locked);
        let value = match self.workers.run_locked(|| change(&ids)) {
            Ok(value) => value,
            Err(error) => return Err(self.aborted(AbortReason::Change(error))),
        };
        // Additions come first, because cancellations free slots and so change the upcoming ids.
        let workers = self.workers;
        let mut earlier = BTreeMap::new();
        for (request, id) in self.additions.into_iter().zip(&ids) {
            let TimerId {
                worker,
                deadline_ns,
                ..
            } = *id;
            let added = locked.shard(worker).insert(deadline_ns, request.payload);
            debug_assert_eq!(added, *id);
            if workers.worker(worker).lower_next_ns(deadline_ns) {
                earlier.insert(worker, deadline_ns);
            }
        }
        let cancelled = self.cancellations.iter().zip(locations);
        let cancelled = cancelled
            .filter_map(|(id, location)| locked.cancel(*id, location))
            .collect();
        drop(locked);
        for (worker, deadline_ns) in earlier {
            workers.notify(worker, true, deadline_ns);
        }
        Ok(Committed {
            ids,
            cancelled,
            value,
        })
    }

    /// Locks the workers concerned and locates the timers to cancel.
    ///
    /// If a timer has migrated to a worker outside of the set, all locks are released and the
    /// worker is added. The set only grows, so this terminates. Fails with the first timer that is
    /// not pending.
    fn lock_all(&self) -> Result<(LockedShards<'a, P>, Vec<TimerId>), TimerId> {
        let added = self.additions.iter().map(|request| request.worker);
        let cancelled = self.cancellations.iter().map(|id| id.worker);
        let mut workers: BTreeSet<usize> = added.chain(cancelled).collect();
        loop {
            let mut locked = LockedShards::lock(self.workers, workers.clone());
            match self.locate(&mut locked) {
                Ok(locations) => return Ok((locked, locations)),
                Err(Missing::Worker(worker)) => workers.insert(worker),
                Err(Missing::Timer(id)) => return Err(id),
            };
        }
    }

    /// Where the timers to cancel are pending.
    fn locate(&self, locked: &mut LockedShards<'a, P>) -> Result<Vec<TimerId>, Missing> {
        let mut locations = Vec::with_capacity(self.cancellations.len());
        for &id in &self.cancellations {
            let location = match locked.shard(id.worker).find(id.key) {
                Lookup::Pending => Some(id),
                Lookup::Migrated(to) if !locked.contains(to.worker) => {
                    return Err(Missing::Worker(to.worker));
                }
                Lookup::Migrated(to) => {
                    let found = locked.shard(to.worker).find(to.key);
                    (found == Lookup::Pending).then_some(to)
                }
                Lookup::Gone => None,
            };
            locations.push(location.ok_or(Missing::Timer(id))?);
        }
        Ok(locations)
    }

    fn upcoming_ids(&self, locked: &LockedShards<'a, P>) -> Vec<TimerId> {
        let mut upcoming: Vec<_> = locked.shards().map(Shard::upcoming).collect();
        let ids = self.additions.iter().filter_map(|request| {
            Some(TimerId {
                worker: request.worker,
                key: upcoming[locked.index(request.worker)].next()?,
                deadline_ns: request.deadline_ns,
            })
        });
        ids.collect()
    }

    fn aborted<E>(self, reason: AbortReason<E>) -> Aborted<P, E> {
        let payloads = self.additions.into_iter().map(|a| a.payload).collect();
        Aborted { reason, payloads }
    }
}

/// What a transaction lacks.
enum Missing {
    /// The lock of this worker.
    Worker(usize),
    /// This timer is not pending.
    Timer(TimerId),
}
