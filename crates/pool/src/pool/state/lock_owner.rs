//! Lock-owner ids: small numbers that a lock can store, by which a thread that waits for the lock
//! finds the worker that holds it.

use std::sync::{Arc, Weak};

use refrain_sync::plain::Mutex;

use super::worker_status::WorkerStatus;

/// The workers by id minus one. Read only by threads that have to wait anyway.
static OWNERS: Mutex<Vec<Weak<WorkerStatus>>> = Mutex::new(Vec::new());

/// The id of a worker. It is reused after the worker is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockOwnerId(u32);

impl LockOwnerId {
    /// For threads that are not workers, and locks that nobody holds.
    pub(crate) const NONE: LockOwnerId = LockOwnerId(0);

    pub(crate) fn register(worker: &Arc<WorkerStatus>) -> LockOwnerId {
        let mut owners = OWNERS.lock();
        let free = owners.iter().position(|owner| owner.strong_count() == 0);
        let index = free.unwrap_or_else(|| {
            owners.push(Weak::new());
            owners.len() - 1
        });
        owners[index] = Arc::downgrade(worker);
        // There are far fewer threads than 2^32.
        LockOwnerId(u32::try_from(index + 1).unwrap_or(0))
    }

    pub(crate) fn from_number(number: u32) -> LockOwnerId {
        LockOwnerId(number)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn worker(self) -> Option<Arc<WorkerStatus>> {
        let index = usize::try_from(self.0).ok()?.checked_sub(1)?;
        let owners = OWNERS.lock();
        owners.get(index)?.upgrade()
    }
}
