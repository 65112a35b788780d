//! A budget that several threads share: a counting semaphore.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_sync::plain::{Condvar, Mutex};

use crate::held_locks::{SharedHold, holds_lock, must_not_wait};

/// A counted resource, such as bytes of memory. [`Permits::acquire`] waits until enough is free, in
/// the order of arrival: nobody waits forever, and of many users none is ahead of the others. An
/// amount larger than the total is granted when nothing else is in use.
///
/// A thread that holds permits must not wait for a thread that acquires some, and who holds a
/// [`Lock`](crate::Lock) must not acquire any. A job of a pool that runs on top of one that holds
/// permits does not wait: what it takes may exceed the total.
#[derive(Debug)]
pub struct Permits {
    state: Mutex<State>,
    total: u64,
}

#[derive(Debug)]
struct State {
    in_use: u64,
    waiting: VecDeque<Waiting>,
    /// How many of those who had to wait have been granted what they waited for.
    granted: u64,
}

#[derive(Debug)]
struct Waiting {
    amount: u64,
    wake: Arc<Condvar>,
}

impl State {
    fn has_room(&self, amount: u64, total: u64) -> bool {
        let after = self.in_use.checked_add(amount);
        self.in_use == 0 || after.is_some_and(|after| after <= total)
    }
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
            state: Mutex::new(State {
                in_use: 0,
                waiting: VecDeque::new(),
                granted: 0,
            }),
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
        let mut state = self.state.lock();
        let is_free = state.waiting.is_empty() && state.has_room(amount, self.total);
        if is_free || must_not_wait() {
            let amount = amount.min(u64::MAX - state.in_use);
            state.in_use += amount;
            return self.acquired(amount);
        }
        let wake = Arc::<Condvar>::default();
        let number = state.granted + state.waiting.len() as u64;
        state.waiting.push_back(Waiting {
            amount,
            wake: Arc::clone(&wake),
        });
        drop(wake.wait_while(state, |state| state.granted <= number));
        self.acquired(amount)
    }

    fn acquired(&self, amount: u64) -> AcquiredPermits<'_> {
        AcquiredPermits {
            permits: self,
            amount,
            _held: SharedHold::new(),
        }
    }

    /// Takes back `amount`, and grants what those who wait longest need.
    fn release(&self, amount: u64) {
        let mut state = self.state.lock();
        state.in_use -= amount;
        while let Some(first) = state.waiting.front()
            && state.has_room(first.amount, self.total)
            && let Some(first) = state.waiting.pop_front()
        {
            state.in_use += first.amount;
            state.granted += 1;
            first.wake.notify_one();
        }
    }
}

impl Drop for AcquiredPermits<'_> {
    fn drop(&mut self) {
        self.permits.release(self.amount);
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
        assert_eq!(permits.state.lock().in_use, 0);
        assert!(most.load(SeqCst) >= 10);
    }

    /// A small amount that would fit does not overtake a large one that waits.
    #[test]
    fn permits_are_granted_in_the_order_of_arrival() {
        let permits = Permits::new(10);
        let order = std::sync::Mutex::new(vec![]);
        std::thread::scope(|scope| {
            let held = permits.acquire(5);
            for (number, amount) in [10, 1, 2, 10, 3].into_iter().enumerate() {
                let (permits, order) = (&permits, &order);
                scope.spawn(move || {
                    let _held = permits.acquire(amount);
                    // Those who are granted permits together may come here in any order.
                    order.lock().unwrap().push([0, 1, 1, 2, 3][number]);
                });
                while permits.state.lock().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 1, 2, 3]);
    }

    #[test]
    fn an_amount_that_overflows_the_sum_is_granted_alone() {
        let permits = Permits::new(1);
        drop(permits.acquire(u64::MAX));
        drop(permits.acquire(u64::MAX));
    }
}
