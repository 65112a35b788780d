//! The timers of several workers, shared by all threads: one lock per worker, and outside of it the time at which to
//! look again.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::held::Held;
use super::shard::{Found, Shard};
use super::transaction::Transaction;
use super::{Expired, NEVER_NS, TimerId};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Padded, ShortGuard, ShortLock};

/// Where expired timers go: a pool starts or wakes the flow that the payload names.
pub trait Sink<P> {
    /// Takes a timer that expired at `worker`. Called once for each, without any lock held, by the thread that called
    /// [`TimerSystem::expire`]; it may use the system, and should be quick: what takes long runs elsewhere.
    fn expired(&self, worker: usize, event: Expired<P>);
}

impl<P, F: Fn(usize, Expired<P>)> Sink<P> for F {
    fn expired(&self, worker: usize, event: Expired<P>) {
        self(worker, event);
    }
}

/// Who is told when a worker has to look at its timers earlier than it knew.
pub trait Notify: Sync {
    /// `worker` has to look at `deadline_ns`. Called without any lock held, and after [`TimerSystem::next_ns`] has
    /// been set; it must make a worker that sleeps, *or is about to*, look again (as unparking a thread does).
    fn earlier(&self, worker: usize, deadline_ns: u64);

    /// Runs a transaction's `change`, which holds locks of the system. A scheduler that runs other jobs on top of a waiting one
    /// does not do so within.
    fn locked<R>(&self, change: impl FnOnce() -> R) -> R {
        change()
    }
}

/// Nobody sleeps: for those who look again and again.
impl Notify for () {
    fn earlier(&self, _worker: usize, _deadline_ns: u64) {}
}

/// The timers of a number of workers. All calls are made through `&self`, from any thread.
///
/// Times are nanoseconds of the caller's clock; the system has none of its own. `P` is what is delivered when a timer
/// fires.
pub struct TimerSystem<P, N = ()> {
    workers: Box<[Padded<Worker<P>>]>,
    notify: N,
}

pub(super) struct Worker<P> {
    shard: ShortLock<Shard<P>>,
    /// Not later than the shard's next deadline. Written under the lock, read without: a reader that must not miss
    /// the newest value (a sleeper) gets it by [`Notify`]; so the order of memory does not matter.
    next_ns: AtomicU64,
}

/// Timers that are taken out under one hold of the lock. Delivery comes after; a burst does not keep others waiting.
const EXPIRED_AT_ONCE: usize = 64;

impl<P, N: Notify> TimerSystem<P, N> {
    /// A system for workers `0..workers`. `notify` hears of deadlines that a worker does not know of.
    pub fn new(workers: usize, notify: N) -> TimerSystem<P, N> {
        let worker = |index| Worker {
            shard: ShortLock::new(Shard::new(index)),
            next_ns: AtomicU64::new(NEVER_NS),
        };
        TimerSystem {
            workers: (0..workers).map(|index| Padded(worker(index))).collect(),
            notify,
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Adds a timer to `worker`'s: when the time is `deadline_ns`, that one's [`TimerSystem::expire`] gives `payload`
    /// to its sink. A deadline that has passed fires at the next look.
    ///
    /// # Panics
    /// If there is no such worker; so all that take one.
    pub fn add(&self, worker: usize, deadline_ns: u64, payload: P) -> TimerId {
        let to = &self.workers[worker];
        let mut shard = to.lock();
        let id = shard.insert(deadline_ns, payload);
        let is_earlier = to.look_by(deadline_ns);
        drop(shard);
        self.notify(worker, is_earlier, deadline_ns);
        id
    }

    /// Ends a timer before its time and gives back its payload. `None`: it has fired, or was cancelled before.
    ///
    /// Of all attempts to cancel a timer and to fire it exactly one succeeds.
    pub fn cancel(&self, id: TimerId) -> Option<P> {
        let home = &self.workers[id.worker];
        let mut at_home = home.lock();
        loop {
            if let Some(taken) = at_home.cancel(id.key) {
                return Some(taken.payload);
            }
            let Found::Away(at) = at_home.find(id.key) else {
                return None;
            };
            drop(at_home);
            let taken = self.workers[at.worker].lock().cancel(at.key);
            at_home = home.lock();
            if let Some(taken) = taken {
                at_home.forget(id.key);
                return Some(taken.payload);
            }
            if at_home.find(id.key) == Found::Away(at) {
                return None; // It ended there, and the record here is about to hear of it.
            }
        }
    }

    /// Moves a pending timer to `worker`, where it will fire. Its id stays the same. `false`: it has ended.
    pub fn migrate(&self, id: TimerId, worker: usize) -> bool {
        let mut found = self.workers[id.worker].lock().find(id.key);
        loop {
            let at = match found {
                Found::Pending => id,
                Found::Away(at) => at,
                Found::Gone => return false,
            };
            if at.worker == worker {
                return true;
            }
            let concerned = [id.worker, at.worker, worker];
            let mut held = Held::lock(self, concerned.into());
            let now_found = held.shard(id.worker).find(id.key);
            if now_found != found {
                found = now_found;
                continue; // It went on before the locks were held.
            }
            let Some(to) = held.shard(worker).upcoming().next() else {
                return false;
            };
            let taken = if at == id {
                held.shard(id.worker).send_away(id.key, to)
            } else {
                held.shard(at.worker).cancel(at.key)
            };
            let Some(taken) = taken else {
                return false;
            };
            held.shard(id.worker).redirect(id.key, to);
            let deadline_ns = taken.deadline_ns;
            held.shard(worker)
                .insert_guest(deadline_ns, taken.payload, id);
            let is_earlier = self.workers[worker].look_by(deadline_ns);
            drop(held);
            self.notify(worker, is_earlier, deadline_ns);
            return true;
        }
    }

    /// Moves all that is pending at `from` to `to`, as when a worker goes home for good.
    pub fn migrate_all(&self, from: usize, to: usize) {
        let ids: Vec<TimerId> = self.workers[from].lock().pending_ids().collect();
        for id in ids {
            self.migrate(id, to);
        }
    }

    /// Begins a batch of additions and cancellations.
    pub fn transaction(&self) -> Transaction<'_, P, N> {
        Transaction::new(self)
    }

    /// When `worker` has to look at its timers; [`NEVER_NS`] when it has none. One load. It may be too early (its
    /// timer was cancelled); after [`TimerSystem::expire`] it is later than that call's `now_ns`, but for what was
    /// added meanwhile.
    pub fn next_ns(&self, worker: usize) -> u64 {
        self.workers[worker].next_ns.load(Ordering::Relaxed)
    }

    /// Timers that are pending at `worker`.
    pub fn pending(&self, worker: usize) -> usize {
        self.workers[worker].lock().pending()
    }

    /// Records that are kept, of a worker without pending timers: none, or there is a leak.
    #[cfg(any(test, feature = "property"))]
    pub(super) fn leftovers(&self, worker: usize) -> usize {
        self.workers[worker].lock().leftovers()
    }

    /// Gives `sink` the timers of `worker` whose deadline is not after `now_ns`, by deadline and then by addition.
    /// Returns how many they were. Any thread may do it for any worker.
    ///
    /// What the sink adds is left for the next call, so the call ends. If the sink panics, the others of its batch
    /// are delivered first, then the panic goes on.
    pub fn expire(&self, worker: usize, now_ns: u64, sink: &impl Sink<P>) -> usize {
        if self.next_ns(worker) > now_ns {
            return 0;
        }
        let pending_before = self.pending(worker);
        let mut batch = Vec::new();
        let mut delivered = 0;
        loop {
            self.take_due(worker, now_ns, &mut batch);
            let taken = batch.len();
            delivered += taken;
            deliver(worker, &mut batch, sink);
            if taken < EXPIRED_AT_ONCE || delivered >= pending_before {
                return delivered;
            }
        }
    }

    /// Takes out the next timers that are due; here it is decided that they fire.
    fn take_due(&self, worker: usize, now_ns: u64, batch: &mut Vec<Expired<P>>) {
        let mut guests = Vec::new();
        let at = &self.workers[worker];
        let mut shard = at.lock();
        while batch.len() < EXPIRED_AT_ONCE
            && let Some((event, guest_of)) = shard.pop_due(now_ns)
        {
            batch.push(event);
            guests.extend(guest_of);
        }
        at.next_ns.store(shard.next_ns(), Ordering::Relaxed);
        drop(shard);
        for id in guests {
            self.workers[id.worker].lock().forget(id.key);
        }
    }

    /// Tells a worker of a new deadline if it does not look before. The caller does not hold a shard any more.
    pub(super) fn notify(&self, worker: usize, is_earlier: bool, deadline_ns: u64) {
        if is_earlier {
            self.notify.earlier(worker, deadline_ns);
        }
    }

    pub(super) fn change<R>(&self, change: impl FnOnce() -> R) -> R {
        self.notify.locked(change)
    }

    pub(super) fn worker(&self, worker: usize) -> &Worker<P> {
        &self.workers[worker]
    }
}

impl<P> Worker<P> {
    pub(super) fn lock(&self) -> ShortGuard<'_, Shard<P>> {
        self.shard.lock()
    }

    /// Sees to it that the worker looks at its timers by `deadline_ns`; `true` if it did not know. The caller holds
    /// the shard.
    pub(super) fn look_by(&self, deadline_ns: u64) -> bool {
        let is_earlier = deadline_ns < self.next_ns.load(Ordering::Relaxed);
        if is_earlier {
            self.next_ns.store(deadline_ns, Ordering::Relaxed);
        }
        is_earlier
    }
}

/// Gives all of `batch` away; if the sink panics, the first panic goes on when all are delivered.
// AssertUnwindSafe: the event is moved in, and the sink belongs to the caller, who sees the panic.
fn deliver<P>(worker: usize, batch: &mut Vec<Expired<P>>, sink: &impl Sink<P>) {
    let mut panic = None;
    for event in batch.drain(..) {
        let outcome = catch_unwind(AssertUnwindSafe(|| sink.expired(worker, event)));
        panic = panic.or(outcome.err());
    }
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}
