use std::sync::atomic::AtomicU8;

use proptest::prelude::*;
use refrain_policy::{Class, TenantId};

use super::*;

const CLASSES: [Class; 3] = [Class::Iso, Class::Normal, Class::Idle];

fn key(class: usize, tenant: usize, deadline: u64) -> Key {
    Key::new(CLASSES[class], TenantId::new(tenant), deadline * 64)
}

/// The rank as the policies compute it: by class, then by the time the tenant has used, then by
/// key.
fn ranked(key: Key, used_ns: &[u64]) -> Rank {
    Rank {
        class: key.class().map_or(u8::MAX, |class| class as u8),
        tenant_time_ns: used_ns.get(key.tenant().index()).copied().unwrap_or(0),
        order: key.bits(),
    }
}

#[derive(Default)]
struct ReferenceQueue {
    entries: Vec<(Key, u64)>,
}

impl ReferenceQueue {
    fn take(
        &mut self,
        used_ns: &[u64],
        limit: Rank,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let wanted = self.entries.iter().enumerate();
        let wanted =
            wanted.filter(|(_, (key, value))| ranked(*key, used_ns) < limit && is_wanted(*value));
        let (index, _) = wanted.min_by_key(|(index, (key, _))| (ranked(*key, used_ns), *index))?;
        Some(self.entries.remove(index).1)
    }
}

proptest! {
    /// Few keys, so that many are equal. Ranks change with the time that tenants have used.
    #[test]
    fn any_sequence_of_calls_matches_reference(
        operations in proptest::collection::vec((0u8..8, 0usize..3, 0usize..3, 0u64..6, 0u64..4), 0..300)
    ) {
        let (queue, mut reference) = (RunQueue::default(), ReferenceQueue::default());
        let mut used_ns = [0; 3];
        for (value, (kind, class, tenant, deadline, modulus)) in (0u64..).zip(operations) {
            let key = key(class, tenant, deadline);
            match kind {
                0..4 => {
                    prop_assert_eq!(queue.push(key, value), Ok(()));
                    reference.entries.push((key, value));
                }
                4 => used_ns[tenant] += deadline,
                _ => {
                    let limit = if kind == 5 { ranked(key, &used_ns) } else { Rank::LAST };
                    let is_wanted = |value: u64| modulus == 0 || value % 4 == modulus;
                    let found = queue.take(|key| ranked(key, &used_ns), limit, |value| is_wanted(*value));
                    prop_assert_eq!(found, reference.take(&used_ns, limit, is_wanted));
                }
            }
            let best = reference.entries.iter().map(|entry| entry.0).min();
            prop_assert_eq!(queue.best_key(), best.unwrap_or(Key::NONE));
            prop_assert_eq!(queue.length(), reference.entries.len());
        }
        let mut left = queue.close();
        left.sort_unstable();
        prop_assert!(left.into_iter().eq(reference.entries.iter().map(|entry| entry.1)));
        prop_assert_eq!(queue.push(key(0, 0, 0), 7), Err(7));
        prop_assert_eq!(queue.take(Rank::from_key, Rank::LAST, |_| true), None);
    }
}

#[test]
fn racing_threads_take_each_entry_once() {
    let queue = RunQueue::default();
    let taken: Vec<AtomicU8> = (0..40_000).map(|_| AtomicU8::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (queue, taken) = (&queue, &taken);
            scope.spawn(move || {
                for step in 0..10_000 {
                    let value = thread * 10_000 + step;
                    assert!(
                        queue
                            .push(key(1, step % 2, step as u64 * 7 % 100), value)
                            .is_ok()
                    );
                    if step % 4 != 0 {
                        let wanted = |value: &usize| value % 4 != 1 || step % 4 == 2;
                        if let Some(value) = queue.take(Rank::from_key, Rank::LAST, wanted) {
                            taken[value].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    for value in queue.close() {
        taken[value].fetch_add(1, Ordering::Relaxed);
    }
    assert!(taken.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    assert_eq!((queue.best_key(), queue.length()), (Key::NONE, 0));
}
