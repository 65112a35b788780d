//! Counts coroutines and how often they were switched.
//!
//! Each thread counts for itself, without locked instructions; reading adds up the counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::limit::{stacks_mapped, stacks_max};
use crate::lock::Lock;

/// The counts of all coroutines of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoroutineStatistics {
    /// Coroutines that exist now, started or not.
    pub live: u64,
    /// The most that existed at once. It is updated when a thread runs out of stacks of its own, so
    /// it may be too low by the stacks that a thread retains: 256 of each size.
    pub peak: u64,
    /// Coroutines created so far.
    pub created: u64,
    /// Coroutines that got a used stack.
    pub stacks_reused: u64,
    /// Entries into coroutines that have ended. Each entry switches there and back.
    pub entries: u64,
    /// Stacks that exist, in use or not.
    pub stacks: u64,
    /// The most stacks that may exist.
    pub stacks_max: u64,
}

#[derive(Debug, Default)]
struct Counts {
    created: AtomicU64,
    ended: AtomicU64,
    reused: AtomicU64,
    entries: AtomicU64,
}

/// The counts of running threads, and the sum over ended ones.
static THREADS: Lock<Vec<Arc<Counts>>> = Lock::new(Vec::new());
static FORMER: Counts = Counts {
    created: AtomicU64::new(0),
    ended: AtomicU64::new(0),
    reused: AtomicU64::new(0),
    entries: AtomicU64::new(0),
};
static PEAK: AtomicU64 = AtomicU64::new(0);

impl Counts {
    fn all(&self) -> [&AtomicU64; 4] {
        [&self.created, &self.ended, &self.reused, &self.entries]
    }
}

pub(super) struct ThreadCounters(Arc<Counts>);

/// Adds to a count that no other thread changes: cheaper than `fetch_add`.
#[inline]
fn add(count: &AtomicU64, number: u64) {
    count.store(count.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

impl ThreadCounters {
    pub(super) fn register() -> ThreadCounters {
        let counts = Arc::new(Counts::default());
        THREADS.lock().push(counts.clone());
        ThreadCounters(counts)
    }

    #[inline]
    pub(super) fn created(&self, is_reused: bool) {
        add(&self.0.created, 1);
        add(&self.0.reused, u64::from(is_reused));
    }

    #[inline]
    pub(super) fn ended(&self) {
        add(&self.0.ended, 1);
    }

    #[inline]
    pub(super) fn switched(&self, entries: u64) {
        add(&self.0.entries, entries);
    }
}

impl Drop for ThreadCounters {
    fn drop(&mut self) {
        let mut threads = THREADS.lock();
        threads.retain(|counts| !Arc::ptr_eq(counts, &self.0));
        for (former, own) in FORMER.all().into_iter().zip(self.0.all()) {
            former.fetch_add(own.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// The counts of all threads. While other threads create and end coroutines, the numbers may come
/// from slightly different moments.
pub fn coroutine_statistics() -> CoroutineStatistics {
    let [created, ended, stacks_reused, entries] = sums();
    let live = created.saturating_sub(ended);
    CoroutineStatistics {
        live,
        peak: PEAK.fetch_max(live, Ordering::Relaxed).max(live),
        created,
        stacks_reused,
        entries,
        stacks: stacks_mapped(),
        stacks_max: stacks_max(),
    }
}

fn sums() -> [u64; 4] {
    let threads = THREADS.lock();
    let mut sums = FORMER.all().map(|count| count.load(Ordering::Relaxed));
    for counts in threads.iter() {
        for (sum, count) in sums.iter_mut().zip(counts.all()) {
            *sum += count.load(Ordering::Relaxed);
        }
    }
    sums
}

#[cold]
pub(super) fn note_peak() {
    let [created, ended, ..] = sums();
    PEAK.fetch_max(created.saturating_sub(ended), Ordering::Relaxed);
}
