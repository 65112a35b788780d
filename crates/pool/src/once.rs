//! A value that is computed once, by the first thread that needs it.

use std::sync::OnceLock;

use refrain_sync::plain::Mutex;

use crate::lock::HeldLock;

/// A cell that is filled on first use. Unlike with [`OnceLock`], filling may fail: then the next
/// thread tries again. Threads that need the value while another computes it wait for the result,
/// so no work is done twice.
#[derive(Debug)]
pub struct OnceValue<T> {
    value: OnceLock<T>,
    computing: Mutex<()>,
}

impl<T> Default for OnceValue<T> {
    fn default() -> Self {
        OnceValue {
            value: OnceLock::new(),
            computing: Mutex::new(()),
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
        let _computing = self.computing.lock();
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _held = HeldLock::new();
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

    #[test]
    fn a_computation_that_fails_is_repeated() {
        let cell = OnceValue::default();
        assert_eq!(cell.get_or_try_init(|| Err::<u8, _>("no")), Err("no"));
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_try_init(|| Ok::<_, &str>(3)), Ok(&3));
    }
}
