//! Models, which loom runs in every interleaving.

use loom::model;
use loom::sync::Arc;
use loom::thread;
use refrain_policy::{Class, Key, Rank, TenantId};

use super::RunQueue;

fn key() -> Key {
    Key::new(Class::Normal, TenantId::default(), 1)
}

fn take(queue: &RunQueue<u32>) -> Option<u32> {
    queue.take(Rank::from_key, Rank::LAST, |_| true)
}

/// Whoever submits, runs or closes: a worker takes the entry, the submitter gets it back, or the
/// end of the pool drops it, and never two of them.
#[test]
fn an_entry_is_taken_refused_or_returned_by_the_end_once() {
    model(|| {
        let queue = Arc::new(RunQueue::default());
        let beside = |work: fn(&RunQueue<u32>) -> bool| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || usize::from(work(&queue)))
        };
        let submitter = beside(|queue| queue.push(key(), 7).is_err());
        let worker = beside(|queue| take(queue).is_some());
        let returned = queue.close().len();
        let others = [submitter, worker].map(|thread| thread.join().unwrap());
        assert_eq!(returned + others.iter().sum::<usize>(), 1);
        assert_eq!((queue.length(), take(&queue)), (0, None));
        assert_eq!(queue.push(key(), 8), Err(8));
    });
}
