//! A budget that several threads share: a counting semaphore.

use refrain_sync::plain::{Condvar, Mutex};

use crate::held_locks::{SharedHold, holds_lock, must_not_wait};

/// A counted resource, such as bytes of memory. [`Permits::acquire`] waits until enough is free. An
/// amount larger than the total is granted when nothing else is in use.
///
/// A thread that holds permits must not wait for a thread that acquires some, and who holds a
/// [`Lock`](crate::Lock) must not acquire any. A job of a pool that runs on top of one that holds
/// permits does not wait: what it takes may exceed the total.
#[derive(Debug)]
pub struct Permits {
    in_use: Mutex<u64>,
    freed: Condvar,
    total: u64,
}

/// Acquired permits; released when dropped.
#[derive(Debug)]
#[must_use]
pub struct AcquiredPermits<'a> {
    permits: &'a Permits,
    amount: u64,
    _held: SharedHold,
}

impl Permits {
    /// Makes `total` permits, all free.
    pub const fn new(total: u64) -> Permits {
        Permits {
            in_use: Mutex::new(0),
            freed: Condvar::new(),
            total,
        }
    }

    /// The number of permits, in use or free.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Waits until `amount` permits or all are free, and takes `amount`.
    pub fn acquire(&self, amount: u64) -> AcquiredPermits<'_> {
        debug_assert!(!holds_lock(), "a job on top of a holder may need the lock");
        let must_wait = |in_use: &mut u64| {
            *in_use > 0
                && !must_not_wait()
                && in_use
                    .checked_add(amount)
                    .is_none_or(|all| all > self.total)
        };
        let mut in_use = self.freed.wait_while(self.in_use.lock(), must_wait);
        let amount = amount.min(u64::MAX - *in_use);
        *in_use += amount;
        drop(in_use);
        AcquiredPermits {
            permits: self,
            amount,
            _held: SharedHold::new(),
        }
    }
}

impl Drop for AcquiredPermits<'_> {
    fn drop(&mut self) {
        *self.permits.in_use.lock() -= self.amount;
        // Waiting threads need different amounts, so all of them check.
        self.permits.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    #[test]
    fn more_than_the_total_is_granted_only_alone() {
        let permits = Permits::new(10);
        let (taken, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (permits, taken, most) = (&permits, &taken, &most);
                scope.spawn(move || {
                    for round in 0..200 {
                        let amount = 1 + (thread * 7 + round * 3) % 12;
                        let held = permits.acquire(amount);
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
        assert_eq!(*permits.in_use.lock(), 0);
        assert!(most.load(SeqCst) >= 10);
    }

    #[test]
    fn an_amount_that_overflows_the_sum_is_granted_alone() {
        let permits = Permits::new(1);
        drop(permits.acquire(u64::MAX));
        drop(permits.acquire(u64::MAX));
    }
}
