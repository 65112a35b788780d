//! The half of a worker that other threads read.

use refrain_policy::Key;
use refrain_sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::requests::Requests;
use crate::idle::Sleeper;
use crate::thread::class::ThreadId;

#[derive(Default)]
pub(crate) struct WorkerStatus {
    pub(crate) requests: Requests,
    pub(crate) sleeper: Sleeper,
    running: AtomicU64,
    pub(crate) kernel_thread: AtomicU32,
}

impl WorkerStatus {
    pub(crate) fn new() -> WorkerStatus {
        let worker = WorkerStatus::default();
        worker.publish(Key::NONE);
        worker
    }

    pub(crate) fn running(&self) -> Key {
        Key::from_bits(self.running.load(Ordering::Relaxed))
    }

    pub(crate) fn publish(&self, key: Key) {
        self.running.store(key.bits(), Ordering::Relaxed);
    }

    /// Its thread in the kernel; 0 before the thread runs.
    pub(crate) fn thread(&self) -> ThreadId {
        // Stored from a positive number.
        self.kernel_thread.load(Ordering::Acquire) as ThreadId
    }

    /// Publishes `key`, if it is more urgent, while its owner waits for a lock that this worker
    /// holds.
    pub(crate) fn inherit(&self, key: Key) {
        self.running.fetch_min(key.bits(), Ordering::Relaxed);
    }
}
