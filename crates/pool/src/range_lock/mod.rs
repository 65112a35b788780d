//! A lock over ranges of numbers, such as the bytes of a file: ranges that do not overlap proceed
//! together.

mod arrivals;
#[cfg(all(test, loom))]
mod models;
mod shared_offset;
#[cfg(all(test, not(loom)))]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use refrain_sync::{Condvar, Mutex, lock, wait};

use arrivals::{Access, Arrivals, RequestId};
pub use shared_offset::{OffsetOverflow, SharedOffset};

use crate::lock::HeldLock;
use crate::pool::inheritance::{current_owner_id, wait_for_owner};
use crate::pool::state::lock_owner::LockOwnerId;

/// A lock over ranges: readers share, a writer has its range exclusively, and ranges that do not
/// overlap never wait for each other.
///
/// First come, first served: a request waits for earlier conflicting ones, whether they hold their
/// ranges or wait themselves, and for no others. So later readers do not overtake a waiting writer,
/// and nobody waits forever.
///
/// A thread that holds a range must not request a conflicting one, and threads that hold several
/// must request them in one order, for example by start. An empty range never conflicts. While a
/// job of a pool waits, the job that holds the range has at least its priority, as with
/// [`Lock`](crate::Lock).
///
/// ```
/// use refrain_pool::range_lock::RangeLock;
///
/// let lock = RangeLock::new();
/// let first = lock.write(0..100);
/// let second = lock.write(100..200);
/// drop((first, second));
/// let (one, other) = (lock.read(50..150), lock.read(100..200));
/// ```
#[derive(Debug, Default)]
pub struct RangeLock {
    arrivals: Mutex<Arrivals<Party>>,
}

/// One request, as seen by the requests that wait for it and those that it waits for.
#[derive(Debug)]
struct Party {
    owner: LockOwnerId,
    /// Made when it has to wait; notified when the request is granted.
    granted: Option<Arc<Condvar>>,
}

/// Holds a range until it is dropped. See [`RangeLock`].
#[derive(Debug)]
#[must_use]
pub struct RangeGuard<'a> {
    // Dropped after the range is released (`Drop` comes before the fields).
    _held: HeldLock,
    lock: &'a RangeLock,
    /// `None` for an empty range.
    id: Option<RequestId>,
}

impl RangeLock {
    /// Creates a lock with no range held.
    pub fn new() -> RangeLock {
        RangeLock::default()
    }

    /// Waits until no writer has a part of the range.
    pub fn read(&self, range: Range<u64>) -> RangeGuard<'_> {
        self.acquire(range, Access::Read)
    }

    /// Waits until the range is free.
    pub fn write(&self, range: Range<u64>) -> RangeGuard<'_> {
        self.acquire(range, Access::Write)
    }

    fn acquire(&self, range: Range<u64>, access: Access) -> RangeGuard<'_> {
        if range.is_empty() {
            return self.guard(None);
        }
        let mut arrivals = lock(&self.arrivals);
        let party = Party {
            owner: current_owner_id(),
            granted: (!arrivals.is_free(&range, access)).then(Arc::default),
        };
        let granted = party.granted.clone();
        let id = arrivals.arrive(range, access, party);
        let Some(granted) = granted else {
            drop(arrivals);
            return self.guard(Some(id));
        };
        let owner = (arrivals.first_blocker(id)).map_or(LockOwnerId::NONE, |first| first.owner);
        drop(arrivals);
        wait_for_owner(owner, || self.wait_until_granted(id, &granted));
        self.guard(Some(id))
    }

    /// Takes the range if it is free to do so now.
    #[cfg(all(test, not(loom)))]
    fn try_acquire(&self, range: Range<u64>, access: Access) -> Option<RangeGuard<'_>> {
        if range.is_empty() {
            return Some(self.guard(None));
        }
        let mut arrivals = lock(&self.arrivals);
        let party = Party {
            owner: current_owner_id(),
            granted: None,
        };
        let id = (arrivals.is_free(&range, access)).then(|| arrivals.arrive(range, access, party));
        drop(arrivals);
        id.map(|id| self.guard(Some(id)))
    }

    fn wait_until_granted(&self, id: RequestId, granted: &Condvar) {
        let mut arrivals = lock(&self.arrivals);
        while !arrivals.is_granted(id) {
            arrivals = wait(granted, arrivals);
        }
    }

    fn guard(&self, id: Option<RequestId>) -> RangeGuard<'_> {
        RangeGuard {
            _held: HeldLock::new(),
            lock: self,
            id,
        }
    }

    /// Ends a request, and wakes the requests that waited only for it.
    fn leave(&self, id: RequestId) {
        let mut woken = Vec::new();
        lock(&self.arrivals).leave(id, |party| woken.extend(party.granted.clone()));
        // Without the lock, which each of them takes at once.
        woken.iter().for_each(|granted| granted.notify_one());
    }
}

#[cfg(all(test, loom))]
impl RangeGuard<'_> {
    fn arrival(&self) -> Option<u64> {
        self.id.map(|id| id.arrival)
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.lock.leave(id);
        }
    }
}
