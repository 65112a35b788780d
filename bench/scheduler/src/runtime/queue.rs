//! Rows about the run queue: remove the first entry and insert one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use crossbeam_skiplist::SkipMap;
use parking_lot::Mutex;
use refrain_policy::{Class, Key, Rank, TenantId};
use refrain_pool::run_queue::RunQueue;
use refrain_sync::ShortLock;

use super::random::Random;
use super::row::{Row, Target};

/// A heap with a counter of insertions.
type Counted = (BinaryHeap<Reverse<(u64, u64, u64)>>, u64);

const DEPTH: u64 = 1000;
const PAIRS_PER_THREAD: u64 = 300_000;

pub fn rows() -> Vec<Row> {
    vec![
        row(
            "queue-1",
            "run queue, pop + push at depth 1,000, 1 thread",
            1,
        ),
        row(
            "queue-2",
            "run queue, pop + push at depth 1,000, 2 threads (time over pairs of both)",
            2,
        ),
    ]
}

fn row(id: &'static str, what: &'static str, threads: u64) -> Row {
    Row::new(id, what, "ns", Target::AtMost(45.0))
        .with("refrain", move || {
            let queue = Arc::new(RunQueue::default());
            fill(|deadline, _| _ = queue.push(key_at(deadline), deadline));
            pairs(threads, move |next_key| {
                let deadline = queue
                    .take(Rank::from_key, Rank::LAST, |_| true)
                    .unwrap_or_default();
                let next = next_key(deadline);
                _ = queue.push(key_at(next), next);
            })
        })
        // In boxes: not beside what the threads read.
        .with("binary heap + parking_lot, two calls", move || {
            pairs_of_heap(threads, &*Box::<Mutex<Counted>>::default())
        })
        .with("binary heap + our lock, two calls", move || {
            pairs_of_heap(threads, &*Box::<ShortLock<Counted>>::default())
        })
        .with("crossbeam SkipMap, two calls", move || {
            let queue = Arc::new((SkipMap::new(), AtomicU64::new(0)));
            let push = |queue: &(SkipMap<(u64, u64), u64>, AtomicU64), key, value| {
                let sequence = queue.1.fetch_add(1, Ordering::Relaxed);
                queue.0.insert((key, sequence), value);
            };
            fill(|key, value| push(&queue, key, value));
            pairs(threads, move |next_key| {
                let popped = queue.0.pop_front();
                let (key, value) = popped.map_or((0, 0), |entry| (entry.key().0, *entry.value()));
                push(&queue, next_key(key), value);
            })
        })
}

/// A heap under a lock. Not a closure, so that calls cost nothing.
trait LockedHeap: Sync {
    fn with<R>(&self, work: impl FnOnce(&mut Counted) -> R) -> R;
}

impl LockedHeap for Mutex<Counted> {
    fn with<R>(&self, work: impl FnOnce(&mut Counted) -> R) -> R {
        work(&mut self.lock())
    }
}

impl LockedHeap for ShortLock<Counted> {
    fn with<R>(&self, work: impl FnOnce(&mut Counted) -> R) -> R {
        work(&mut self.lock())
    }
}

fn pairs_of_heap(threads: u64, heap: &impl LockedHeap) -> f64 {
    let push = |key, value| {
        heap.with(|(heap, sequence)| {
            // Equal keys leave in the order of arrival, as in Refrain's queue.
            *sequence += 1;
            heap.push(Reverse((key, *sequence, value)));
        });
    };
    fill(push);
    pairs(threads, |next_key| {
        let popped = heap.with(|(heap, _)| heap.pop());
        let Reverse((key, _, value)) = popped.unwrap_or_default();
        push(next_key(key), value);
    })
}

/// The key of a flow with this deadline.
fn key_at(deadline: u64) -> Key {
    Key::new(Class::Normal, TenantId::default(), deadline << 6)
}

fn fill(push: impl Fn(u64, u64)) {
    let mut random = Random(3);
    (0..DEPTH).for_each(|value| push(random.next() % SPREAD, value));
}

/// The largest difference between deadlines of waiting entries.
const SPREAD: u64 = 1 << 20;

/// Each thread repeatedly removes the first entry and inserts it with a later deadline. Nanoseconds
/// per pair over all threads.
fn pairs(threads: u64, pair: impl Fn(&mut dyn FnMut(u64) -> u64) + Send + Sync) -> f64 {
    let start_line = Barrier::new(threads as usize);
    let work = |seed: u64| {
        let mut random = Random(seed);
        start_line.wait();
        let start = Instant::now();
        for _ in 0..PAIRS_PER_THREAD {
            pair(&mut |key| key + random.next() % SPREAD);
        }
        (start, Instant::now())
    };
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || work(seed)))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    });
    // From the first start to the last end: the thread that waits for them may not be scheduled in
    // between.
    let begin = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    let all = end.zip(begin).map(|(end, begin)| end - begin);
    all.map_or(f64::NAN, |all| all.as_nanos() as f64) / (threads * PAIRS_PER_THREAD) as f64
}
