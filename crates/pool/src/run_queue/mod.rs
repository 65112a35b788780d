//! A run queue: queued entries, the most urgent first. Its first key can be read without the lock.
//!
//! The entries of one class and tenant are in one heap, ordered by key. The [`Rank`] that the
//! caller computes for a key decides between heaps; it may change from call to call, with the time
//! that tenants have used. One lock guards all heaps. The first key is also in a word beside the
//! lock, so that comparing queues, and checking whether an entry precedes a running flow, takes no
//! lock (MuQSS's `best_key`). The alternative, a lock-free skip list, costs four to six times as
//! much here (crossbeam's: see `refrain-bench runtime --only queue`).

use std::cmp::Ordering as Compared;
use std::collections::BinaryHeap;

use refrain_policy::{Key, Rank};
use refrain_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use refrain_sync::{Padded, ShortGuard, ShortLock};

/// The number of spins between attempts to take the lock.
const WAITS_SPINS: &[u32] = &[256, 512, 1024, 2048, 4096, 8192];

/// A queued entry and its position in the order: by key, and in the order of arrival among equal
/// keys.
struct QueuedEntry<T> {
    key: Key,
    sequence: u64,
    entry: T,
}

impl<T> QueuedEntry<T> {
    /// Both in one number: the heap compares without a branch, which would be unpredictable.
    fn order(&self) -> u128 {
        u128::from(self.key.bits()) << 64 | u128::from(self.sequence)
    }
}

impl<T> PartialEq for QueuedEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<T> Eq for QueuedEntry<T> {}

impl<T> PartialOrd for QueuedEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Compared> {
        Some(self.cmp(other))
    }
}

/// Reversed: the greatest element of the heap runs first.
impl<T> Ord for QueuedEntry<T> {
    fn cmp(&self, other: &Self) -> Compared {
        other.order().cmp(&self.order())
    }
}

struct TenantHeap<T> {
    /// The [`Key::lane`] of all its entries.
    number: usize,
    entries: BinaryHeap<QueuedEntry<T>>,
}

struct RunQueueState<T> {
    /// All heaps used so far, one per pair of class and tenant; a single one in most pools.
    heaps: Vec<TenantHeap<T>>,
    next_sequence: u64,
    length: usize,
    is_closed: bool,
}

impl<T> Default for RunQueueState<T> {
    fn default() -> Self {
        RunQueueState {
            heaps: Vec::new(),
            next_sequence: 0,
            length: 0,
            is_closed: false,
        }
    }
}

impl<T> RunQueueState<T> {
    fn first(&self, rank: &impl Fn(Key) -> Rank) -> Option<(usize, Rank)> {
        if let [heap] = &self.heaps[..] {
            return Some((0, rank(heap.entries.peek()?.key)));
        }
        let ranks = self.heaps.iter().enumerate().filter_map(|(index, heap)| {
            let key = heap.entries.peek()?.key;
            Some((index, rank(key)))
        });
        ranks.min_by_key(|&(_, rank)| rank)
    }

    /// The key to publish: the smallest of the heaps' first keys. It is a hint, like everything
    /// that is read without the lock.
    fn best_key(&self) -> Key {
        if let [heap] = &self.heaps[..] {
            return heap.entries.peek().map_or(Key::NONE, |first| first.key);
        }
        let firsts = self.heaps.iter().filter_map(|heap| heap.entries.peek());
        firsts.map(|first| first.key).min().unwrap_or(Key::NONE)
    }

    fn push(&mut self, waiting: QueuedEntry<T>) {
        let number = waiting.key.lane().unwrap_or(0);
        self.length += 1;
        match self.heaps.iter_mut().find(|heap| heap.number == number) {
            Some(heap) => heap.entries.push(waiting),
            None => self.heaps.push(TenantHeap {
                number,
                entries: BinaryHeap::from([waiting]),
            }),
        }
    }

    fn pop(&mut self, heap: usize) -> Option<QueuedEntry<T>> {
        let waiting = self.heaps.get_mut(heap)?.entries.pop()?;
        self.length -= 1;
        Some(waiting)
    }
}

/// See the head of the module.
pub struct RunQueue<T> {
    state: Padded<ShortLock<RunQueueState<T>>>,
    /// Written under the lock, on separate cache lines: readers do not slow the lock down.
    published: Padded<Published>,
}

struct Published {
    best_key: AtomicU64,
    length: AtomicUsize,
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        let published = Published {
            best_key: AtomicU64::new(Key::NONE.bits()),
            length: AtomicUsize::new(0),
        };
        RunQueue {
            state: Padded(ShortLock::default()),
            published: Padded(published),
        }
    }
}

impl<T> RunQueue<T> {
    /// The key of a queued entry: the first one, unless tenants differ. [`Key::NONE`] when the
    /// queue is empty. One load, which may return an old value.
    pub fn best_key(&self) -> Key {
        Key::from_bits(self.published.best_key.load(Ordering::Acquire))
    }

    /// The number of entries. One load, which may return an old value.
    pub fn length(&self) -> usize {
        self.published.length.load(Ordering::Relaxed)
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The entry, if the queue is closed.
    pub fn push(&self, key: Key, entry: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(entry);
        }
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        state.push(QueuedEntry {
            key,
            sequence,
            entry,
        });
        self.publish(&state);
        Ok(())
    }

    /// Takes the first entry with a rank below `limit` that `is_wanted` accepts. Entries that it
    /// rejects keep their positions.
    pub fn take(
        &self,
        rank: impl Fn(Key) -> Rank,
        limit: Rank,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Option<T> {
        if !self.best_key().is_some() {
            return None;
        }
        let mut state = self.lock();
        // Entries that other workers may take and the caller may not. There are few, and they are
        // back in their positions before the lock is released.
        let mut rejected = Vec::new();
        let mut found = None;
        while let Some((heap, rank)) = state.first(&rank) {
            if rank >= limit {
                break;
            }
            let Some(waiting) = state.pop(heap) else {
                break;
            };
            if is_wanted(&waiting.entry) {
                found = Some(waiting.entry);
                break;
            }
            rejected.push(waiting);
        }
        rejected.into_iter().for_each(|waiting| state.push(waiting));
        self.publish(&state);
        found
    }

    /// Closes the queue: it accepts no more entries. Returns the queued ones.
    pub fn close(&self) -> Vec<T> {
        let mut state = self.lock();
        state.is_closed = true;
        let heaps = std::mem::take(&mut state.heaps);
        state.length = 0;
        self.publish(&state);
        drop(state);
        let waiting = heaps.into_iter().flat_map(|each| each.entries.into_vec());
        waiting.map(|waiting| waiting.entry).collect()
    }

    /// Takes the lock. If it is held, backs off, twice as long each time, before it uses the lock's
    /// own wait. So the holder, whose cache has the lines of the heap, can take the lock again
    /// without moving them between processors.
    ///
    /// Two threads that do nothing else need, for a take and a push: 88 ns with 256 spins at first,
    /// 100 with 128, 120 with 64; 101 to 120 with 8 spins before the 256 (for threads that meet by
    /// chance, to which the long wait costs 3 µs); 125 with the lock's own wait after four rounds.
    /// With an earlier heap: 154 with 64 spins, 234 with a mutex, 300 to 500 with attempts in a
    /// loop.
    #[track_caller]
    fn lock(&self) -> ShortGuard<'_, RunQueueState<T>> {
        self.state.lock_after(WAITS_SPINS)
    }

    /// Writes only what has changed: most pushes do not change the first key.
    fn publish(&self, state: &RunQueueState<T>) {
        let best_key = state.best_key().bits();
        if self.published.best_key.load(Ordering::Relaxed) != best_key {
            self.published.best_key.store(best_key, Ordering::Release);
        }
        self.published.length.store(state.length, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
