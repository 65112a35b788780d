//! A batch of additions and cancellations that happens as a whole or not at all, together with a change of the
//! caller's own.

use std::collections::{BTreeMap, BTreeSet};

use super::held::Held;
use super::shard::{Found, Shard};
use super::system::{Notify, TimerSystem};
use super::{TimerId, deadline_after};

/// Additions and cancellations that are only written down until [`Transaction::commit`]. Dropped, it does nothing.
#[must_use = "nothing happens before `commit`"]
pub struct Transaction<'a, P, N> {
    system: &'a TimerSystem<P, N>,
    additions: Vec<Addition<P>>,
    cancellations: Vec<Cancellation>,
}

struct Addition<P> {
    worker: usize,
    when: When,
    payload: P,
}

enum When {
    At { deadline_ns: u64 },
    After { delay: std::time::Duration },
}

struct Cancellation {
    id: TimerId,
    /// Else it does not matter whether the timer is still pending.
    is_required: bool,
}

/// What a transaction did.
#[derive(Debug, PartialEq, Eq)]
pub struct Committed<P, R> {
    /// The ids of the additions, in the order of their calls.
    pub ids: Vec<TimerId>,
    /// Per cancellation, in the order of their calls, the timer's payload; `None` where it had ended.
    pub cancelled: Vec<Option<P>>,
    /// What the caller's change returned.
    pub value: R,
}

/// Why a transaction did nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Reason<E> {
    /// This timer was to be cancelled and has ended before.
    NotPending(TimerId),
    /// The caller's change said no.
    Change(E),
}

/// A transaction that did nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused<P, E> {
    /// Why.
    pub reason: Reason<E>,
    /// The payloads that were to be added, in the order of their calls.
    pub payloads: Vec<P>,
}

impl<'a, P, N: Notify> Transaction<'a, P, N> {
    pub(super) fn new(system: &'a TimerSystem<P, N>) -> Self {
        Transaction {
            system,
            additions: Vec::new(),
            cancellations: Vec::new(),
        }
    }

    /// Will add a timer at `worker`'s that is due at `deadline_ns`.
    pub fn add(&mut self, worker: usize, deadline_ns: u64, payload: P) -> &mut Self {
        self.push(worker, When::At { deadline_ns }, payload)
    }

    /// Will add a timer at `worker`'s that is due `delay` after the commit.
    pub fn add_after(
        &mut self,
        worker: usize,
        delay: std::time::Duration,
        payload: P,
    ) -> &mut Self {
        self.push(worker, When::After { delay }, payload)
    }

    fn push(&mut self, worker: usize, when: When, payload: P) -> &mut Self {
        self.additions.push(Addition {
            worker,
            when,
            payload,
        });
        self
    }

    /// Will end a timer that must be pending, or the whole transaction is refused.
    pub fn cancel(&mut self, id: TimerId) -> &mut Self {
        let is_required = true;
        self.cancellations.push(Cancellation { id, is_required });
        self
    }

    /// Will end a timer if it is still pending.
    pub fn cancel_if_pending(&mut self, id: TimerId) -> &mut Self {
        let is_required = false;
        self.cancellations.push(Cancellation { id, is_required });
        self
    }

    /// Does everything at once: no other thread sees, fires or cancels a part of it. Delays count from `now_ns`.
    ///
    /// `change` is called when nothing can fail any more but by its own word, with the ids of the additions. It runs
    /// under the locks of all workers concerned, so what it changes and what the transaction does are one step for
    /// whoever else comes through the timers: no addition fires before `change` has returned, no cancelled timer after.
    /// It must be short, and must not use the timer system (it would wait for itself). A panic in it is a refusal.
    pub fn commit<R, E>(
        self,
        now_ns: u64,
        change: impl FnOnce(&[TimerId]) -> Result<R, E>,
    ) -> Result<Committed<P, R>, Refused<P, E>> {
        let (mut held, places) = match self.lock_all() {
            Ok(locked) => locked,
            Err(id) => return Err(self.refused(Reason::NotPending(id))),
        };
        let ids = self.upcoming_ids(&held);
        let system = self.system;
        let value = match system.change(|| change(&ids)) {
            Ok(value) => value,
            Err(error) => return Err(self.refused(Reason::Change(error))),
        };
        // First the additions, since a cancelled timer's slot would be the next to be used.
        let mut earlier = BTreeMap::new();
        for (addition, id) in self.additions.into_iter().zip(&ids) {
            let Addition {
                worker,
                when,
                payload,
            } = addition;
            let deadline_ns = when.deadline_ns(now_ns);
            let added = held.shard(worker).insert(deadline_ns, payload);
            debug_assert_eq!(added, *id);
            if system.worker(worker).look_by(deadline_ns) {
                earlier.insert(worker, deadline_ns);
            }
        }
        let cancelled = self.cancellations.iter().zip(places);
        let cancelled = cancelled
            .map(|(cancellation, place)| held.cancel(cancellation.id, place?))
            .collect();
        drop(held);
        for (worker, deadline_ns) in earlier {
            system.notify(worker, true, deadline_ns);
        }
        Ok(Committed {
            ids,
            cancelled,
            value,
        })
    }

    /// Locks the workers concerned, and finds the timers to cancel there. If one has migrated further, all locks are
    /// let go and its worker joins: the set only grows, so this ends.
    fn lock_all(&self) -> Result<(Held<'a, P>, Vec<Option<TimerId>>), TimerId> {
        let added = self.additions.iter().map(|addition| addition.worker);
        let cancelled = self.cancellations.iter().map(|c| c.id.worker);
        let mut workers: BTreeSet<usize> = added.chain(cancelled).collect();
        loop {
            let mut held = Held::lock(self.system, workers.clone());
            match self.places(&mut held) {
                Ok(places) => return Ok((held, places)),
                Err(Missing::Worker(worker)) => workers.insert(worker),
                Err(Missing::Timer(id)) => return Err(id),
            };
        }
    }

    /// Where the timers to cancel are pending, `None` where they are not and need not be.
    fn places(&self, held: &mut Held<'a, P>) -> Result<Vec<Option<TimerId>>, Missing> {
        let mut places = Vec::with_capacity(self.cancellations.len());
        for &Cancellation { id, is_required } in &self.cancellations {
            let place = match held.shard(id.worker).find(id.key) {
                Found::Pending => Some(id),
                Found::Away(at) if !held.contains(at.worker) => {
                    return Err(Missing::Worker(at.worker));
                }
                Found::Away(at) => {
                    let found = held.shard(at.worker).find(at.key);
                    (found == Found::Pending).then_some(at)
                }
                Found::Gone => None,
            };
            if place.is_none() && is_required {
                return Err(Missing::Timer(id));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// The ids that the additions will get.
    fn upcoming_ids(&self, held: &Held<'a, P>) -> Vec<TimerId> {
        let mut upcoming: Vec<_> = held.shards().map(Shard::upcoming).collect();
        let workers = self.additions.iter().map(|addition| addition.worker);
        let ids = workers.filter_map(|worker| upcoming[held.index(worker)].next());
        ids.collect()
    }

    fn refused<E>(self, reason: Reason<E>) -> Refused<P, E> {
        let payloads = self.additions.into_iter().map(|a| a.payload).collect();
        Refused { reason, payloads }
    }
}

/// What keeps a transaction from having all that it needs.
enum Missing {
    Worker(usize),
    Timer(TimerId),
}

impl When {
    fn deadline_ns(&self, now_ns: u64) -> u64 {
        match *self {
            When::At { deadline_ns } => deadline_ns,
            When::After { delay } => deadline_after(now_ns, delay),
        }
    }
}
