//! A budget that several threads draw from, and wait for.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::lock::Holding;

/// A counted resource, such as bytes of memory: whoever takes some waits until enough is free. What is larger than the whole
/// is given alone: it waits until nothing is taken.
///
/// Who holds permits must not wait for others who want some.
#[derive(Debug)]
pub struct Permits {
    taken: Mutex<u64>,
    freed: Condvar,
    total: u64,
}

/// What was taken; given back when dropped.
#[derive(Debug)]
#[must_use]
pub struct Taken<'a> {
    permits: &'a Permits,
    amount: u64,
    _holding: Holding,
}

impl Permits {
    /// `total` permits, all free.
    pub const fn new(total: u64) -> Permits {
        Permits {
            taken: Mutex::new(0),
            freed: Condvar::new(),
            total,
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Takes `amount`, as soon as there are so many, or all are free.
    pub fn take(&self, amount: u64) -> Taken<'_> {
        let must_wait = |taken: &mut u64| {
            *taken > 0 && taken.checked_add(amount).is_none_or(|all| all > self.total)
        };
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.freed.wait_while(taken, must_wait);
        *taken.unwrap_or_else(PoisonError::into_inner) += amount;
        Taken {
            permits: self,
            amount,
            _holding: Holding::new(),
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut taken = self
            .permits
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *taken -= self.amount;
        drop(taken);
        // Those who wait want different amounts: let all look.
        self.permits.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    #[test]
    fn never_more_than_the_total_unless_alone() {
        let permits = Permits::new(10);
        let (taken, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (permits, taken, most) = (&permits, &taken, &most);
                scope.spawn(move || {
                    for round in 0..200 {
                        let amount = 1 + (thread * 7 + round * 3) % 12;
                        let held = permits.take(amount);
                        let now = taken.fetch_add(amount, SeqCst) + amount;
                        assert!(now <= 10 || now == amount, "{now} with {amount}");
                        most.fetch_max(now, SeqCst);
                        std::thread::yield_now();
                        taken.fetch_sub(amount, SeqCst);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(*permits.taken.lock().unwrap(), 0);
        assert!(most.load(SeqCst) >= 10);
    }

    #[test]
    fn amounts_beyond_all_numbers_are_given_alone() {
        let permits = Permits::new(1);
        drop(permits.take(u64::MAX));
        drop(permits.take(u64::MAX));
    }
}
