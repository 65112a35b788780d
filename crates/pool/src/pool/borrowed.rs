//! Jobs that borrow from the stack of whoever waits for them.
//!
//! `unsafe`: queues hold jobs without a lifetime (`'static`), the callers' jobs borrow. [`lending`] waits, also when it is left by a panic,
//! until every job it lent has been dropped, so no borrow is used after its end. This is the argument of `std::thread::scope` and of
//! `rayon::scope`: it holds because the only way to a [`Lender`] is inside a call that does not return before.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;

use refrain_timer::sync::{Condvar, Mutex, lock, wait};

use super::job::{JobBody, Step};

/// A job that borrows for `'env`.
pub(crate) type BorrowingBody<'env> = Box<dyn FnMut() -> Step + Send + 'env>;

/// How many lent jobs are not dropped yet.
#[derive(Default)]
struct Lent {
    count: Mutex<usize>,
    returned: Condvar,
}

/// Lends jobs; see [`lending`].
pub(crate) struct Lender<'env> {
    lent: Arc<Lent>,
    /// Invariant: a lender for a long borrow must not pass for one of a short borrow.
    borrow: PhantomData<&'env mut &'env ()>,
}

/// Given back when the job is dropped.
struct Token(Arc<Lent>);

impl Drop for Token {
    fn drop(&mut self) {
        // Notified under the lock: the waiter must not be able to return, and with it end the borrows, before this is over. (The counter itself
        // is shared and would survive; what must be over is the drop of the job, which happened before the token's.)
        let mut count = lock(&self.0.count);
        *count -= 1;
        if *count == 0 {
            self.0.returned.notify_all();
        }
    }
}

/// A closure and its token, dropped in this order (fields drop as they are declared).
struct LentBody {
    body: JobBody,
    _token: Token,
}

impl LentBody {
    fn call(&mut self) -> Step {
        (self.body)()
    }
}

struct WaitOnDrop<'a, 'env>(&'a Lender<'env>);

impl Drop for WaitOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Runs `body` with a lender, and returns when `body` has and all jobs it lent are gone (run to their end, or dropped unstarted).
pub(crate) fn lending<'env, R>(body: impl FnOnce(&Lender<'env>) -> R) -> R {
    let lender = Lender {
        lent: Arc::default(),
        borrow: PhantomData,
    };
    let _waits = WaitOnDrop(&lender);
    body(&lender)
}

impl<'env> Lender<'env> {
    /// `job` without its lifetime; whoever gets it has to drop it some day, or [`lending`] never returns.
    pub(crate) fn lend(&self, job: BorrowingBody<'env>) -> JobBody {
        *lock(&self.lent.count) += 1;
        let token = Token(Arc::clone(&self.lent));
        // SAFETY: only the lifetime changes. The closure lives in `LentBody` beside a token that is dropped after it, and `lending`,
        // which every holder of `&Lender<'env>` is inside of, returns only when all tokens are dropped, so the closure is gone before
        // `'env` can end.
        let body: JobBody = unsafe { std::mem::transmute::<BorrowingBody<'env>, JobBody>(job) };
        let mut lent = LentBody {
            body,
            _token: token,
        };
        Box::new(move || lent.call())
    }

    /// Jobs that were lent and are not gone.
    pub(crate) fn count(&self) -> usize {
        *lock(&self.lent.count)
    }

    fn wait(&self) {
        let mut count = lock(&self.lent.count);
        while *count > 0 {
            count = wait(&self.lent.returned, count);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn waits_for_jobs_that_run_elsewhere_and_for_dropped_ones() {
        for unwinds in [false, true] {
            let sum = AtomicU32::new(0);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                lending(|lender| {
                    for index in 0..8 {
                        let sum = &sum;
                        let mut job = lender.lend(Box::new(move || {
                            std::thread::sleep(std::time::Duration::from_millis(2));
                            sum.fetch_add(1, Ordering::Relaxed);
                            Step::Done
                        }));
                        if index % 2 == 0 {
                            std::thread::spawn(move || {
                                job();
                            });
                        }
                    }
                    assert!(!unwinds, "left by a panic");
                });
            }));
            assert_eq!(result.is_err(), unwinds);
            assert_eq!(sum.into_inner(), 4);
        }
    }
}
