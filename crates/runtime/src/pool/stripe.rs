//! A run queue: flows that wait, by lane and key, with the first key readable without the lock.

use std::cmp::Ordering as Compared;
use std::collections::BinaryHeap;

use super::flow::Entry;
use super::view::View;
use crate::policy::{Key, Policy, Rank};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::topology::CpuId;

/// A waiting entry and its place in the order: by key, and first come first among equals.
struct Waiting {
    key: Key,
    sequence: u64,
    entry: Entry,
}

impl Waiting {
    fn place(&self) -> (Key, u64) {
        (self.key, self.sequence)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Compared> {
        Some(self.cmp(other))
    }
}

/// Reversed: the heap's greatest is the first to run.
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Compared {
        other.place().cmp(&self.place())
    }
}

/// Flows of one class and tenant: within them the key alone decides.
#[derive(Default)]
struct Lane {
    /// [`Key::lane`] of all that are in it.
    number: usize,
    heap: BinaryHeap<Waiting>,
}

#[derive(Default)]
struct Queue {
    /// Lanes that were used once. There are as many as pairs of class and tenant, one in most pools.
    lanes: Vec<Lane>,
    next_sequence: u64,
    length: usize,
    is_closed: bool,
}

impl Queue {
    /// The lane whose head comes first, with that head's key and rank.
    fn first(&self, policy: &impl Policy, view: &View<'_>) -> Option<(usize, Key, Rank)> {
        let heads = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let key = lane.heap.peek()?.key;
            Some((index, key, policy.rank(key, view)))
        });
        heads.min_by_key(|&(_, _, rank)| rank)
    }

    /// The key to publish. Of several lanes' heads the one with the least key: a hint, as all that is read without the lock.
    fn best_key(&self) -> Key {
        let heads = self.lanes.iter().filter_map(|lane| lane.heap.peek());
        heads.map(|head| head.key).min().unwrap_or(Key::NONE)
    }

    fn put(&mut self, waiting: Waiting) {
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
}

/// One stripe. See the head of the file.
pub(crate) struct Stripe {
    queue: Mutex<Queue>,
    best_key: AtomicU64,
    length: AtomicU64,
}

impl Default for Stripe {
    fn default() -> Self {
        Stripe {
            queue: Mutex::default(),
            best_key: AtomicU64::new(Key::NONE.bits()),
            length: AtomicU64::new(0),
        }
    }
}

impl Stripe {
    /// The key of an entry that waits here, the first unless tenants differ; [`Key::NONE`] when none does.
    pub(crate) fn best_key(&self) -> Key {
        Key::from_bits(self.best_key.load(Ordering::Acquire))
    }

    /// How many entries wait.
    pub(crate) fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed) as usize
    }

    fn publish(&self, queue: &Queue) {
        self.best_key
            .store(queue.best_key().bits(), Ordering::Release);
        self.length.store(queue.length as u64, Ordering::Relaxed);
    }

    /// Adds an entry; gives it back when the stripe is closed.
    pub(crate) fn push(&self, key: Key, entry: Entry) -> Result<(), Entry> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Err(entry);
        }
        let sequence = queue.next_sequence;
        queue.next_sequence += 1;
        queue.put(Waiting {
            key,
            sequence,
            entry,
        });
        self.publish(&queue);
        Ok(())
    }

    /// Takes the first entry that `cpu` may take and, where `before` names a running flow, that comes before that one.
    pub(crate) fn take(
        &self,
        policy: &impl Policy,
        view: &View<'_>,
        cpu: CpuId,
        before: Option<Key>,
    ) -> Option<Entry> {
        if !self.best_key().is_some() {
            return None;
        }
        let limit = before.map_or(Rank::LAST, |key| policy.rank(key, view));
        let mut queue = lock(&self.queue);
        // Entries that others may take and this processor may not: few, and back in their places before anybody looks.
        let mut passed_over = Vec::new();
        let mut found = None;
        while let Some((lane, _, rank)) = queue.first(policy, view) {
            if rank >= limit {
                break;
            }
            let Some(waiting) = queue.lanes[lane].heap.pop() else {
                break;
            };
            queue.length -= 1;
            if waiting.entry.is_allowed(policy, view, cpu) {
                found = Some(waiting.entry);
                break;
            }
            passed_over.push(waiting);
        }
        passed_over
            .into_iter()
            .for_each(|waiting| queue.put(waiting));
        self.publish(&queue);
        found
    }

    /// Takes no more entries, and gives up those that wait.
    pub(crate) fn close(&self) -> Vec<Entry> {
        let mut queue = lock(&self.queue);
        queue.is_closed = true;
        let lanes = std::mem::take(&mut queue.lanes);
        queue.length = 0;
        self.publish(&queue);
        drop(queue);
        let waiting = lanes.into_iter().flat_map(|lane| lane.heap.into_vec());
        waiting.map(|waiting| waiting.entry).collect()
    }
}
