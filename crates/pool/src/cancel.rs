//! A flag that asks work to stop early.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::event::Event;

/// Asks work to stop early. Clones share one flag; once set it stays set.
///
/// The code that does the work checks the flag between its steps (a block, a segment) and returns
/// its own error. What waits for a time, waits for [`Cancellation::event`].
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    event: Arc<Event>,
}

impl Cancellation {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag of all clones, and wakes those who wait for it.
    pub fn cancel(&self) {
        self.event.happen();
    }

    /// Whether [`Cancellation::cancel`] has been called.
    pub fn is_cancelled(&self) -> bool {
        self.event.has_happened()
    }

    /// Happens when [`Cancellation::cancel`] is called.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The shared flag, for signal handlers that set it themselves; see [`Event::flag`].
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(self.event.flag())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

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
