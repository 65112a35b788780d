//! A value that is computed once, by whoever needs it first.

use std::sync::OnceLock;
use std::sync::{Mutex, PoisonError};

use crate::lock::Holding;

/// Like a lazily filled cell, but filling may fail: then the next one tries again. Others who need the value meanwhile
/// wait for the one who computes it, so that no work is done twice.
#[derive(Debug)]
pub struct OnceValue<T> {
    value: OnceLock<T>,
    /// Held by the one who computes.
    turn: Mutex<()>,
}

impl<T> Default for OnceValue<T> {
    fn default() -> Self {
        OnceValue {
            value: OnceLock::new(),
            turn: Mutex::new(()),
        }
    }
}

impl<T> OnceValue<T> {
    /// The value, if it was computed.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, taken out.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// The value; `compute` makes it if nobody has yet.
    ///
    /// # Errors
    /// What `compute` returns. The value then stays absent.
    pub fn get_or_try_init<E>(&self, compute: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _holding = Holding::new();
        let value = compute()?;
        Ok(self.value.get_or_init(|| value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn computed_once_for_all_threads() {
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
    fn a_failure_is_not_remembered() {
        let cell = OnceValue::default();
        assert_eq!(cell.get_or_try_init(|| Err::<u8, _>("no")), Err("no"));
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_try_init(|| Ok::<_, &str>(3)), Ok(&3));
    }
}
