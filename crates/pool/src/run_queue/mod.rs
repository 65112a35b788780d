//! A run queue: entries that wait, the most urgent first, with the first key readable without the lock.
//!
//! Entries of one class and tenant lie in one heap, where the key alone decides; between heaps decides the [`Rank`] that the caller gives a
//! key, which may change from call to call (what a tenant has had). One lock guards all of it. Its first key lies in a word beside it, so that
//! who compares queues, or asks whether something goes before what it runs, takes no lock (MuQSS's `best_key`). The other candidate, a skip
//! list without locks, costs four to six times as much here (crossbeam's: see `refrain-bench runtime --only queue`).

use std::cmp::Ordering as Compared;
use std::collections::BinaryHeap;

use refrain_policy::{Key, Rank};
use refrain_timer::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use refrain_timer::sync::{Padded, ShortGuard, ShortLock};

/// Spins of some 12 ns between attempts at the lock. Under loom none: it counts a spin as no progress.
const WAITS_SPINS: &[u32] = if cfg!(loom) {
    &[]
} else {
    &[256, 512, 1024, 2048, 4096, 8192]
};

/// A waiting entry and its place in the order: by key, and first come first among equals.
struct Waiting<T> {
    key: Key,
    sequence: u64,
    entry: T,
}

impl<T> Waiting<T> {
    /// Both in one number: the heap compares without a branch, which nothing could foresee.
    fn place(&self) -> u128 {
        u128::from(self.key.bits()) << 64 | u128::from(self.sequence)
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Compared> {
        Some(self.cmp(other))
    }
}

/// Reversed: the heap's greatest is the first to run.
impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> Compared {
        other.place().cmp(&self.place())
    }
}

/// Entries of one class and tenant.
struct Lane<T> {
    /// [`Key::lane`] of all that are in it.
    number: usize,
    heap: BinaryHeap<Waiting<T>>,
}

struct Lanes<T> {
    /// Lanes that were used once. There are as many as pairs of class and tenant, one in most pools.
    lanes: Vec<Lane<T>>,
    next_sequence: u64,
    length: usize,
    is_closed: bool,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Lanes {
            lanes: Vec::new(),
            next_sequence: 0,
            length: 0,
            is_closed: false,
        }
    }
}

impl<T> Lanes<T> {
    /// The lane whose head comes first, with that head's rank.
    fn first(&self, rank: &impl Fn(Key) -> Rank) -> Option<(usize, Rank)> {
        if let [lane] = &self.lanes[..] {
            return Some((0, rank(lane.heap.peek()?.key)));
        }
        let heads = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let key = lane.heap.peek()?.key;
            Some((index, rank(key)))
        });
        heads.min_by_key(|&(_, rank)| rank)
    }

    /// The key to publish. Of several lanes' heads the one with the least key: a hint, as all that is read without the lock.
    fn best_key(&self) -> Key {
        if let [lane] = &self.lanes[..] {
            return lane.heap.peek().map_or(Key::NONE, |head| head.key);
        }
        let heads = self.lanes.iter().filter_map(|lane| lane.heap.peek());
        heads.map(|head| head.key).min().unwrap_or(Key::NONE)
    }

    fn put(&mut self, waiting: Waiting<T>) {
        let number = waiting.key.lane().unwrap_or(0);
        self.length += 1;
        match self.lanes.iter_mut().find(|lane| lane.number == number) {
            Some(lane) => lane.heap.push(waiting),
            None => self.lanes.push(Lane {
                number,
                heap: BinaryHeap::from([waiting]),
            }),
        }
    }

    fn pop(&mut self, lane: usize) -> Option<Waiting<T>> {
        let waiting = self.lanes.get_mut(lane)?.heap.pop()?;
        self.length -= 1;
        Some(waiting)
    }
}

/// See the head of the module.
pub struct RunQueue<T> {
    lanes: Padded<ShortLock<Lanes<T>>>,
    /// Written under the lock, on lines of their own: readers do not slow the lock down.
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
            lanes: Padded(ShortLock::default()),
            published: Padded(published),
        }
    }
}

impl<T> RunQueue<T> {
    /// The key of an entry that waits here, the first unless tenants differ; [`Key::NONE`] when none does. One load; it may be of a moment ago.
    pub fn best_key(&self) -> Key {
        Key::from_bits(self.published.best_key.load(Ordering::Acquire))
    }

    /// How many entries wait. One load; it may be of a moment ago.
    pub fn length(&self) -> usize {
        self.published.length.load(Ordering::Relaxed)
    }

    /// Adds an entry; gives it back when the queue is closed.
    ///
    /// # Errors
    /// The entry.
    pub fn push(&self, key: Key, entry: T) -> Result<(), T> {
        let mut lanes = self.lock();
        if lanes.is_closed {
            return Err(entry);
        }
        let sequence = lanes.next_sequence;
        lanes.next_sequence += 1;
        lanes.put(Waiting {
            key,
            sequence,
            entry,
        });
        self.publish(&lanes);
        Ok(())
    }

    /// Takes the first entry with a rank below `limit` that `is_wanted` takes. Those that it passes over keep their places.
    pub fn take(
        &self,
        rank: impl Fn(Key) -> Rank,
        limit: Rank,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Option<T> {
        if !self.best_key().is_some() {
            return None;
        }
        let mut lanes = self.lock();
        // Entries that others may take and the caller may not: few, and back in their places before anybody looks.
        let mut passed_over = Vec::new();
        let mut found = None;
        while let Some((lane, rank)) = lanes.first(&rank) {
            if rank >= limit {
                break;
            }
            let Some(waiting) = lanes.pop(lane) else {
                break;
            };
            if is_wanted(&waiting.entry) {
                found = Some(waiting.entry);
                break;
            }
            passed_over.push(waiting);
        }
        passed_over
            .into_iter()
            .for_each(|waiting| lanes.put(waiting));
        self.publish(&lanes);
        found
    }

    /// Takes no more entries, and gives up those that wait.
    pub fn close(&self) -> Vec<T> {
        let mut queue = self.lock();
        queue.is_closed = true;
        let lanes = std::mem::take(&mut queue.lanes);
        queue.length = 0;
        self.publish(&queue);
        drop(queue);
        let waiting = lanes.into_iter().flat_map(|lane| lane.heap.into_vec());
        waiting.map(|waiting| waiting.entry).collect()
    }

    /// Waits away from the lock, twice as long each time, before it asks the kernel: so its holder, who has the heap's
    /// lines in its cache, may come again without their travelling to and fro. Two threads that do nothing else need
    /// 88 ns per take and push with 256 spins at first, 100 with 128, 120 with 64, 101 to 120 with 8 before the 256 (for those who meet by
    /// chance, whom the long wait costs 3 µs), 125 when it goes to the kernel after four waits; with an earlier heap 154 with 64, 234 with the mutex's own way to wait, and 300 to 500
    /// when they tried again and again.
    fn lock(&self) -> ShortGuard<'_, Lanes<T>> {
        for &spins in WAITS_SPINS {
            if let Some(lanes) = self.lanes.try_lock() {
                return lanes;
            }
            (0..spins).for_each(|_| std::hint::spin_loop());
        }
        self.lanes.lock()
    }

    /// Writes only what changed: the first key mostly does not when something is pushed.
    fn publish(&self, lanes: &Lanes<T>) {
        let best_key = lanes.best_key().bits();
        if self.published.best_key.load(Ordering::Relaxed) != best_key {
            self.published.best_key.store(best_key, Ordering::Release);
        }
        self.published.length.store(lanes.length, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
