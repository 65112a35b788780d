//! A queue that several threads take the most urgent entry from: a run queue's inside.
//!
//! A heap ([`Heap`]) under one lock, and its first key in a word beside it, so that who compares queues, or asks
//! whether something goes before what it runs, takes no lock (MuQSS's `best_key`). The other candidate, a skip
//! list without locks, costs six times as much here (crossbeam's: see `refrain-bench runtime --only queue`).

mod heap;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, Padded, lock};

pub use heap::{Heap, Ticket};

/// The first key of an empty queue; after all others.
pub const NO_KEY: u64 = u64::MAX;

/// Spins before the second attempt at the lock (some 0.8 µs at 12 ns each) and how often that doubles.
const FIRST_WAIT_SPINS: u32 = 64;
const WAITS: u32 = 6;

/// See the head of the module. Smaller keys come first, then what was pushed first.
pub struct OrderedQueue<T> {
    heap: Padded<Mutex<Heap<T>>>,
    /// Written under the lock, on lines of their own: readers do not slow the lock down.
    published: Padded<Published>,
}

struct Published {
    first_key: AtomicU64,
    length: AtomicUsize,
}

impl<T> Default for OrderedQueue<T> {
    fn default() -> Self {
        let published = Published {
            first_key: AtomicU64::new(NO_KEY),
            length: AtomicUsize::new(0),
        };
        OrderedQueue {
            heap: Padded(Mutex::new(Heap::default())),
            published: Padded(published),
        }
    }
}

impl<T> OrderedQueue<T> {
    /// Waits away from the lock, twice as long each time, before it asks the kernel: so its holder, who has the heap's
    /// lines in its cache, may come again without their travelling to and fro. Two threads that do nothing else need
    /// 154 ns per pop and push, 234 with the mutex's own way to wait; longer waits help more (130 ns with 12 µs at once),
    /// and cost those who meet by chance as much. To try again and again after a wait is worse than all (300 to 500).
    fn lock(&self) -> MutexGuard<'_, Heap<T>> {
        for doublings in 0..WAITS {
            if let Ok(heap) = self.heap.try_lock() {
                return heap;
            }
            (0..FIRST_WAIT_SPINS << doublings).for_each(|_| std::hint::spin_loop());
        }
        lock(&self.heap)
    }

    /// Adds an entry.
    pub fn push(&self, key: u64, value: T) -> Ticket {
        let mut heap = self.lock();
        let ticket = heap.push(key, value);
        self.publish(&heap);
        ticket
    }

    /// Takes the first entry.
    pub fn pop(&self) -> Option<(u64, T)> {
        self.pop_if(|_| true)
    }

    /// Takes the first entry if its key is below `limit`.
    pub fn pop_before(&self, limit: u64) -> Option<(u64, T)> {
        self.pop_if(|key| key < limit)
    }

    /// Asks without the lock first.
    fn pop_if(&self, is_wanted: impl Fn(u64) -> bool) -> Option<(u64, T)> {
        if self.is_empty() || !is_wanted(self.first_key()) {
            return None;
        }
        let mut heap = self.lock();
        if !is_wanted(heap.first_key()?) {
            return None;
        }
        let first = heap.pop();
        self.publish(&heap);
        first
    }

    /// Adds an entry and takes the first, under one hold of the lock: who has used up its turn gives way.
    pub fn push_pop(&self, key: u64, value: T) -> Option<(u64, T)> {
        let mut heap = self.lock();
        heap.push(key, value);
        let first = heap.pop();
        self.publish(&heap);
        first
    }

    /// Takes an entry out, if it is still there.
    pub fn remove(&self, ticket: Ticket) -> Option<T> {
        let mut heap = self.lock();
        let removed = heap.remove(ticket);
        self.publish(&heap);
        removed
    }

    /// The key of the first entry, [`NO_KEY`] when there is none. One load; it may be of a moment ago.
    pub fn first_key(&self) -> u64 {
        self.published.first_key.load(Ordering::Acquire)
    }

    /// How many entries there are. One load; it may be of a moment ago.
    pub fn len(&self) -> usize {
        self.published.length.load(Ordering::Acquire)
    }

    /// Whether there are none. As [`OrderedQueue::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes only what changed: the first key mostly does not when something is pushed.
    fn publish(&self, heap: &Heap<T>) {
        let first_key = heap.first_key().unwrap_or(NO_KEY);
        if self.published.first_key.load(Ordering::Relaxed) != first_key {
            self.published.first_key.store(first_key, Ordering::Release);
        }
        self.published.length.store(heap.len(), Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
