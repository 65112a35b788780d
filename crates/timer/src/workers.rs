//! The shared state of a timer system: one locked shard per worker, with its next deadline outside
//! of the lock.

use crate::callbacks::Notify;
use crate::deadline::NEVER_NS;
use crate::shard::Shard;
use refrain_sync::atomic::{AtomicU64, Ordering};
use refrain_sync::{Padded, ShortGuard, ShortLock};

pub(crate) struct Workers<P, N> {
    workers: Box<[Padded<Worker<P>>]>,
    notify: N,
}

pub(crate) struct Worker<P> {
    shard: ShortLock<Shard<P>>,
    /// Not later than the shard's next deadline. Written under the lock, read without it. Relaxed
    /// accesses suffice: a reader that must not miss the newest value (a sleeper) is woken by
    /// [`Notify`].
    next_ns: AtomicU64,
}

impl<P, N: Notify> Workers<P, N> {
    pub(crate) fn new(workers: usize, notify: N) -> Workers<P, N> {
        let worker = |index| Worker {
            shard: ShortLock::new(Shard::new(index)),
            next_ns: AtomicU64::new(NEVER_NS),
        };
        Workers {
            workers: (0..workers).map(|index| Padded(worker(index))).collect(),
            notify,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// # Panics
    /// If the worker does not exist.
    pub(crate) fn worker(&self, worker: usize) -> &Worker<P> {
        &self.workers[worker]
    }

    /// Notifies a worker of a new deadline if that is earlier than its next one. The caller must
    /// have released the shard.
    pub(crate) fn notify(&self, worker: usize, is_earlier: bool, deadline_ns: u64) {
        if is_earlier {
            self.notify.earlier(worker, deadline_ns);
        }
    }
}

impl<P> Worker<P> {
    pub(crate) fn lock(&self) -> ShortGuard<'_, Shard<P>> {
        self.shard.lock()
    }

    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns.load(Ordering::Relaxed)
    }

    /// Publishes the next deadline. The caller holds the shard.
    pub(crate) fn set_next_ns(&self, next_ns: u64) {
        self.next_ns.store(next_ns, Ordering::Relaxed);
    }

    /// Lowers the published deadline to at most `deadline_ns`. Returns whether it was later. The
    /// caller holds the shard.
    pub(crate) fn lower_next_ns(&self, deadline_ns: u64) -> bool {
        let is_earlier = deadline_ns < self.next_ns();
        if is_earlier {
            self.set_next_ns(deadline_ns);
        }
        is_earlier
    }
}
