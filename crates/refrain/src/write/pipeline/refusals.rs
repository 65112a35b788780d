//! Counts how often the system refused memory.
//!
//! What reads old pages returns `None` for a page that cannot be read, and then nothing is matched
//! there. If memory is the reason, that must not pass: the bytes of the archive would depend on it.

use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::try_reserve_exact;

use crate::error::Result;

#[derive(Debug, Default)]
pub(crate) struct Refusals(AtomicU64);

impl Refusals {
    /// How often memory was refused so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A buffer of zeros; `None` if the system refuses it, which counts.
    pub(crate) fn zeroed(&self, length_bytes: usize) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        if try_reserve_exact(&mut buffer, length_bytes).is_err() {
            self.0.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        buffer.resize(length_bytes, 0);
        Some(buffer)
    }

    /// Counts a result that failed for lack of memory.
    pub(crate) fn count_in<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if error.is_out_of_memory() {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn only_refused_memory_counts() {
        let refusals = Refusals::default();
        assert_eq!(refusals.zeroed(3), Some(vec![0; 3]));
        assert!(
            refusals
                .count_in(Err::<(), _>(Error::limit("too long")))
                .is_err()
        );
        assert!(refusals.count_in(Ok(())).is_ok());
        assert_eq!(refusals.count(), 0);
        assert_eq!(refusals.zeroed(usize::MAX), None);
        let error = refrain_pool::BufferPool::new(usize::MAX, 1)
            .get()
            .unwrap_err();
        assert!(refusals.count_in(Err::<(), _>(Error::from(error))).is_err());
        assert_eq!(refusals.count(), 2);
    }
}
