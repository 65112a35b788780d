//! The half of a worker that other threads read, and its counts.

use refrain_policy::Key;
use refrain_sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::requests::Requests;
use crate::histogram::Histogram;
use crate::idle::Sleeper;
use crate::thread::class::ThreadId;

/// The counts of a worker. Only the worker writes, with a load and a store; readers add up.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) jobs: Counter,
    pub(crate) runs: Counter,
    pub(crate) nested: Counter,
    pub(crate) parks: Counter,
    pub(crate) busy_ns: Counter,
    pub(crate) cpu_ns: Counter,
    /// The number of wake-ups that it sent, and how many of them took a system call.
    pub(crate) wakes: Counter,
    pub(crate) wake_calls: Counter,
    /// How often and how long it waited for locks, and how often it raised a holder out of the
    /// kernel's idle class.
    pub(crate) lock_waits: Counter,
    pub(crate) lock_wait_ns: Counter,
    pub(crate) raised: Counter,
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0
            .store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(crate) struct WorkerStatus {
    pub(crate) requests: Requests,
    pub(crate) sleeper: Sleeper,
    running: AtomicU64,
    pub(crate) kernel_thread: AtomicU32,
    pub(crate) counters: Counters,
    pub(crate) gaps: Histogram,
    pub(crate) responses: Histogram,
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
