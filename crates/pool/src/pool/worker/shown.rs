//! The half of a worker that others see, and what it has counted.

use refrain_policy::{Key, Nice};
use refrain_timer::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::idle::Sleeper;
use crate::pool::histogram::Histogram;
use crate::pool::signal::Signal;
use crate::pool::system;

/// What a worker has counted. It alone writes, with a load and a store; sums are made by readers.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) jobs: Counter,
    pub(crate) runs: Counter,
    pub(crate) nested: Counter,
    pub(crate) helped: Counter,
    pub(crate) parks: Counter,
    pub(crate) busy_ns: Counter,
    pub(crate) cpu_ns: Counter,
    /// Wake-ups that it sent, and how many of them took a system call.
    pub(crate) wakes: Counter,
    pub(crate) wake_calls: Counter,
    /// Times it waited for a lock, how long, and how often it raised a holder out of the kernel's idle class.
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

/// The half of a worker that others see.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) signal: Signal,
    pub(crate) sleeper: Sleeper,
    running: AtomicU64,
    running_nice: AtomicU32,
    /// When the slice of the running flow ends; `u64::MAX` when nobody needs to tell it.
    pub(crate) slice_end_ns: AtomicU64,
    /// It has begun to join since the last beat.
    pub(crate) is_forking: AtomicBool,
    /// Its thread in the kernel, once it lives.
    pub(crate) kernel_thread: AtomicU32,
    pub(crate) counters: Counters,
    pub(crate) gaps: Histogram,
    pub(crate) responses: Histogram,
}

impl Worker {
    pub(crate) fn new() -> Worker {
        let worker = Worker::default();
        worker.show(Key::NONE, Nice::default(), u64::MAX);
        worker
    }

    pub(crate) fn running(&self) -> Key {
        Key::from_bits(self.running.load(Ordering::Relaxed))
    }

    pub(crate) fn running_nice(&self) -> Nice {
        // Stored as an index, 0 to 39.
        Nice::new(self.running_nice.load(Ordering::Relaxed) as i32 + Nice::MIN.value())
    }

    /// Shows what it runs, and until when.
    pub(super) fn show(&self, key: Key, nice: Nice, slice_end_ns: u64) {
        self.running.store(key.bits(), Ordering::Relaxed);
        self.running_nice
            .store(nice.index() as u32, Ordering::Relaxed);
        self.slice_end_ns.store(slice_end_ns, Ordering::Relaxed);
    }

    /// Its thread in the kernel; 0 before it lives.
    pub(crate) fn thread(&self) -> system::ThreadId {
        // Stored from a positive number.
        self.kernel_thread.load(Ordering::Acquire) as system::ThreadId
    }

    /// Shows a more urgent key while somebody waits for what it holds.
    pub(crate) fn lend(&self, key: Key) {
        self.running.fetch_min(key.bits(), Ordering::Relaxed);
    }
}
