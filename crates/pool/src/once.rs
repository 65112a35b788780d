//! A value that is computed once, by the first thread that needs it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_sync::plain::{Mutex, MutexGuard};

use crate::lock::HeldLock;
use crate::pool::state::current::current_worker;

/// A cell that is filled on first use. Unlike with [`OnceLock`], filling may fail: then the next
/// thread tries again. Threads that need the value while another computes it wait for the result,
/// so no work is done twice.
///
/// Only a job of a pool does not wait for a thread outside the pool, and computes a value of its
/// own: that thread may wait for a job ([`compute`](crate::compute)), and if all workers waited for
/// such threads, the jobs would never run.
#[derive(Debug)]
pub struct OnceValue<T> {
    value: OnceLock<T>,
    computing: Mutex<()>,
    /// Whether a job of a pool computes the value.
    is_in_job: AtomicBool,
}

/// Held while the value is computed.
struct Turn<'a> {
    is_in_job: &'a AtomicBool,
    _computing: MutexGuard<'a, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.is_in_job.store(false, Ordering::Release);
    }
}

impl<T> Default for OnceValue<T> {
    fn default() -> Self {
        OnceValue {
            value: OnceLock::new(),
            computing: Mutex::new(()),
            is_in_job: AtomicBool::new(false),
        }
    }
}

impl<T> OnceValue<T> {
    /// The value, if it has been computed.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Consumes the cell and returns the value, if it has been computed.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Returns the value; calls `compute` if it has not been computed yet.
    ///
    /// # Errors
    /// The error of `compute`. The cell then remains empty.
    pub fn get_or_try_init<E>(&self, compute: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _turn = self.turn();
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _held = HeldLock::new();
        let value = compute()?;
        Ok(self.value.get_or_init(|| value))
    }

    /// Waits until nobody else computes the value. `None`: this is a job, and must not wait.
    fn turn(&self) -> Option<Turn<'_>> {
        let is_in_job = current_worker().is_some();
        let free = if is_in_job { self.computing.try_lock() } else { Some(self.computing.lock()) };
        let computing = match free {
            Some(computing) => computing,
            None if self.is_in_job.load(Ordering::Acquire) => self.computing.lock(),
            None => return None,
        };
        self.is_in_job.store(is_in_job, Ordering::Release);
        Some(Turn {
            is_in_job: &self.is_in_job,
            _computing: computing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn all_threads_get_the_value_of_one_computation() {
        let cell = OnceValue::default();
        let calls = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let value =
                        cell.get_or_try_init(|| Ok::<_, ()>(calls.fetch_add(1, Ordering::Relaxed)));
                    assert_eq!(value, Ok(&0));
                });
            }
        });
        assert_eq!(calls.into_inner(), 1);
    }

    #[cfg(not(loom))]
    #[test]
    fn a_job_does_not_wait_for_a_thread_outside_the_pool() {
        use refrain_policy::{Class, Entity};

        let pool = crate::pool::Pool::start(crate::pool::Options::with_workers(1)).unwrap();
        let flow = pool.flow(Entity::new(Class::Normal));
        let cell = OnceValue::default();
        // The thread computes in the pool, whose only worker needs the value.
        let outside = cell.get_or_try_init(|| {
            let inside = flow.run(|| *cell.get_or_try_init(|| Ok::<_, ()>(1)).unwrap());
            assert_eq!(inside, Ok(1));
            Ok::<_, ()>(2)
        });
        assert_eq!(outside, Ok(&1), "there is one value");
    }

    #[test]
    fn a_computation_that_fails_is_repeated() {
        let cell = OnceValue::default();
        assert_eq!(cell.get_or_try_init(|| Err::<u8, _>("no")), Err("no"));
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_try_init(|| Ok::<_, &str>(3)), Ok(&3));
    }
}
