//! A flag that asks work to stop early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks work to stop early. Clones share one flag; once set it stays set.
///
/// The code that does the work checks the flag between its steps (a block, a segment) and returns
/// its own error.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    flag: Arc<AtomicBool>,
}

impl Cancellation {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag of all clones. Safe to call from a signal handler: it only stores to an
    /// atomic.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether [`Cancellation::cancel`] has been called.
    // Relaxed: no other data depends on the flag, and a load that is a few nanoseconds late only
    // delays the stop.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The shared flag, for signal handlers that set it themselves.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_flag() {
        let original = Cancellation::new();
        let clone = original.clone();
        let unrelated = Cancellation::new();
        assert!(!clone.is_cancelled());
        original.cancel();
        assert!(clone.is_cancelled());
        assert!(clone.flag().load(Ordering::Relaxed));
        assert!(!unrelated.is_cancelled());
    }
}
