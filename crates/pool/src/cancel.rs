//! A flag that asks work to stop early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks work to stop early. Clones share one flag; once set it stays set.
///
/// The flag only asks: whoever does the work looks at it between pieces (a block, a segment) and
/// returns an error of its own.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    flag: Arc<AtomicBool>,
}

impl Cancellation {
    /// Not yet cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody who holds a clone to stop. Safe to call from a signal handler: it only
    /// stores to an atomic.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether somebody called [`Cancellation::cancel`].
    // Relaxed: the flag carries no data with it, and a load that is late by some nanoseconds only
    // delays the stop.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The shared flag, for signal handlers that want to set it themselves.
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
        let stranger = Cancellation::new();
        assert!(!clone.is_cancelled());
        original.cancel();
        assert!(clone.is_cancelled());
        assert!(clone.flag().load(Ordering::Relaxed));
        assert!(!stranger.is_cancelled());
    }
}
