//! A value that is computed once, by the first thread that needs it.

use std::sync::OnceLock;

use crate::turns::Turns;

/// A cell that is filled on first use. Unlike with [`OnceLock`], filling may fail: then the next
/// thread tries again. Threads that need the value while another computes it wait for the result,
/// so no work is done twice.
///
/// Only jobs of a pool that must not wait for their turn (see [`Turns`]) compute a value of their
/// own.
#[derive(Debug)]
pub struct OnceValue<T> {
    value: OnceLock<T>,
    turns: Turns,
}

impl<T> Default for OnceValue<T> {
    fn default() -> Self {
        OnceValue {
            value: OnceLock::new(),
            turns: Turns::default(),
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
        let _turn = self.turns.take();
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = compute()?;
        Ok(self.value.get_or_init(|| value))
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
