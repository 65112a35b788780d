//! Jobs that borrow from the stack of the thread that waits for them.
//!
//! `unsafe`: queues contain jobs without a lifetime (`'static`), but the jobs of callers borrow.
//! [`with_borrowed_jobs`] waits, also when it ends by a panic, until every job whose lifetime was
//! removed has been dropped, so no borrow is used after its end. This is the argument of
//! `std::thread::scope` and of `rayon::scope`: a [`BorrowedJobs`] only exists inside a call that
//! does not return earlier.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;

use refrain_sync::{Condvar, Mutex, lock, wait};

use super::job::JobBody;

pub(crate) type BorrowingBody<'env> = Box<dyn FnOnce() + Send + 'env>;

#[derive(Default)]
struct Outstanding {
    count: Mutex<usize>,
    is_zero: Condvar,
}

/// Removes the lifetimes of jobs; see [`with_borrowed_jobs`].
pub(crate) struct BorrowedJobs<'env> {
    outstanding: Arc<Outstanding>,
    /// Invariant: a value for a long borrow must not be usable as one for a short borrow.
    borrow: PhantomData<&'env mut &'env ()>,
}

struct Token(Arc<Outstanding>);

impl Drop for Token {
    fn drop(&mut self) {
        // Notified under the lock: the waiting thread must not be able to return, and with it end
        // the borrows, before this is over. (The counter itself is shared and would survive. The
        // job must have been dropped, and that happens before its token is dropped.)
        let mut count = lock(&self.0.count);
        *count -= 1;
        if *count == 0 {
            self.0.is_zero.notify_all();
        }
    }
}

/// A closure and its token, dropped in this order (fields are dropped in the order of declaration).
struct CountedBody {
    body: JobBody,
    _token: Token,
}

impl CountedBody {
    fn call(self) {
        // The token outlives what the closure had captured, also while this unwinds.
        let CountedBody { body, _token } = self;
        body();
    }
}

struct WaitOnDrop<'a, 'env>(&'a BorrowedJobs<'env>);

impl Drop for WaitOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Runs `body`, and returns when `body` has returned and all jobs whose lifetime it removed have
/// been dropped (after they ran, or unstarted).
pub(crate) fn with_borrowed_jobs<'env, R>(body: impl FnOnce(&BorrowedJobs<'env>) -> R) -> R {
    let borrowed = BorrowedJobs {
        outstanding: Arc::default(),
        borrow: PhantomData,
    };
    let _wait = WaitOnDrop(&borrowed);
    body(&borrowed)
}

impl<'env> BorrowedJobs<'env> {
    /// Removes the lifetime of `job`. The job must be dropped at some time, or
    /// [`with_borrowed_jobs`] never returns.
    pub(crate) fn without_lifetime(&self, job: BorrowingBody<'env>) -> JobBody {
        *lock(&self.outstanding.count) += 1;
        let token = Token(Arc::clone(&self.outstanding));
        // SAFETY: only the lifetime changes. The closure is in a `CountedBody` beside a token that
        // is dropped after it. Every holder of `&BorrowedJobs<'env>` is inside
        // `with_borrowed_jobs`, which returns only when all tokens are dropped, so the closure is
        // gone before `'env` can end.
        let body: JobBody = unsafe { std::mem::transmute::<BorrowingBody<'env>, JobBody>(job) };
        let counted = CountedBody {
            body,
            _token: token,
        };
        Box::new(move || counted.call())
    }

    pub(crate) fn outstanding(&self) -> usize {
        *lock(&self.outstanding.count)
    }

    fn wait(&self) {
        let mut count = lock(&self.outstanding.count);
        while *count > 0 {
            count = wait(&self.outstanding.is_zero, count);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn waits_for_running_jobs_and_for_dropped_jobs() {
        for unwinds in [false, true] {
            let sum = AtomicU32::new(0);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                with_borrowed_jobs(|borrowed| {
                    for index in 0..8 {
                        let sum = &sum;
                        let job = borrowed.without_lifetime(Box::new(move || {
                            std::thread::sleep(std::time::Duration::from_millis(2));
                            sum.fetch_add(1, Ordering::Relaxed);
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
