//! Limits how many whole tar streams are decoded by many threads at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// Each takes some 20 MiB. Further streams are decoded piece by piece.
const STREAMS_MAX: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct TarPermits(AtomicU64);

/// Permission for one stream, until dropped.
#[derive(Debug)]
pub(super) struct TarPermit<'a>(&'a TarPermits);

impl TarPermits {
    /// `None` if there are too many streams.
    pub(super) fn try_take(&self) -> Option<TarPermit<'_>> {
        let one_more = |count| (count < STREAMS_MAX).then_some(count + 1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.ok().map(|_| TarPermit(self))
    }
}

impl Drop for TarPermit<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_return_when_they_are_dropped() {
        let permits = TarPermits::default();
        let mut taken: Vec<_> = (0..STREAMS_MAX).map(|_| permits.try_take()).collect();
        assert!(taken.iter().all(Option::is_some));
        assert!(permits.try_take().is_none());
        taken.pop();
        assert!(permits.try_take().is_some());
    }
}
