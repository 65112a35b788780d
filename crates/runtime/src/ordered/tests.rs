use std::collections::BTreeMap;
use std::sync::atomic::AtomicU8;

use proptest::prelude::*;

use super::*;

/// The slow twin: a sorted map by key and arrival.
#[derive(Default)]
struct Naive {
    entries: BTreeMap<(u64, u64), u64>,
    arrivals: u64,
}

impl Naive {
    fn push(&mut self, key: u64, value: u64) -> (u64, u64) {
        self.arrivals += 1;
        self.entries.insert((key, self.arrivals), value);
        (key, self.arrivals)
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        let ((key, _), value) = self.entries.pop_first()?;
        Some((key, value))
    }

    fn pop_before(&mut self, limit: u64) -> Option<(u64, u64)> {
        let first = self.entries.first_entry()?;
        (first.key().0 < limit).then(|| {
            let ((key, _), value) = first.remove_entry();
            (key, value)
        })
    }

    fn first_key(&self) -> u64 {
        self.entries.first_key_value().map_or(NO_KEY, |(k, _)| k.0)
    }
}

proptest! {
    /// Few keys, so that many are equal; tickets of entries that are gone are tried too.
    #[test]
    fn any_sequence_of_calls_does_what_the_twin_does(
        operations in proptest::collection::vec((0u8..8, 0u64..20, any::<usize>()), 0..600)
    ) {
        let (queue, mut naive) = (OrderedQueue::default(), Naive::default());
        let mut tickets: Vec<(Ticket, (u64, u64))> = Vec::new();
        for (value, (kind, key, which)) in (0..).zip(operations) {
            let key = if key == 19 { NO_KEY } else { key };
            match kind {
                0..4 => tickets.push((queue.push(key, value), naive.push(key, value))),
                4 => prop_assert_eq!(queue.pop(), naive.pop()),
                5 => prop_assert_eq!(queue.pop_before(key), naive.pop_before(key)),
                6 => {
                    naive.push(key, value);
                    prop_assert_eq!(queue.push_pop(key, value), naive.pop());
                }
                _ => if let Some(which) = which.checked_rem(tickets.len()) {
                    let (ticket, entry) = tickets[which];
                    prop_assert_eq!(queue.remove(ticket), naive.entries.remove(&entry));
                }
            }
            prop_assert_eq!(queue.first_key(), naive.first_key());
            prop_assert_eq!(queue.len(), naive.entries.len());
        }
        while let Some(first) = naive.pop() {
            prop_assert_eq!(queue.pop(), Some(first));
        }
        prop_assert_eq!(queue.pop(), None);
    }
}

#[test]
fn equal_keys_leave_in_the_order_they_came() {
    let queue = OrderedQueue::default();
    let tickets: Vec<_> = (0..100).map(|value| queue.push(value % 3, value)).collect();
    assert_eq!(queue.remove(tickets[30]), Some(30));
    assert_eq!(queue.remove(tickets[30]), None);
    let popped: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(_, v)| v).collect();
    let mut expected: Vec<u64> = (0..100).filter(|&value| value != 30).collect();
    expected.sort_by_key(|value| value % 3);
    assert_eq!(popped, expected);
}

#[test]
fn racing_threads_take_each_entry_once() {
    let queue = OrderedQueue::default();
    let taken: Vec<AtomicU8> = (0..40_000).map(|_| AtomicU8::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (queue, taken) = (&queue, &taken);
            scope.spawn(move || {
                let take = |value: usize| _ = taken[value].fetch_add(1, Ordering::Relaxed);
                for step in 0..10_000 {
                    let value = thread * 10_000 + step;
                    let ticket = queue.push(step as u64 * 7 % 100, value);
                    match step % 4 {
                        0 => drop(queue.remove(ticket).map(take)),
                        1..3 => drop(queue.pop().map(|(_, value)| take(value))),
                        _ => {}
                    }
                }
            });
        }
    });
    while let Some((_, value)) = queue.pop() {
        taken[value].fetch_add(1, Ordering::Relaxed);
    }
    assert!(taken.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    assert_eq!((queue.first_key(), queue.is_empty()), (NO_KEY, true));
}
