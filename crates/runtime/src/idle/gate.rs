//! At most one worker per stripe on its way from sleep to work.

use crate::sync::atomic::{AtomicU32, Ordering};

const QUIET: u32 = 0;
/// A worker is on its way.
const WAKING: u32 = 1;
/// And since it was called, more work came.
const WAKING_MORE: u32 = 2;

/// Keeps a burst of work from waking everybody: the first piece wakes one worker, and that one, when it has arrived,
/// the next if there is more (folly's `ThrottledLifoSem`, which keeps one waiter "waking").
///
/// A wake-up that is kept back costs the others' way from sleep to work; what is urgent wakes its worker past the gate.
#[derive(Debug)]
pub struct WakeGate {
    state: AtomicU32,
}

impl Default for WakeGate {
    fn default() -> Self {
        WakeGate {
            state: AtomicU32::new(QUIET),
        }
    }
}

impl WakeGate {
    /// Somebody has queued work (before this call). `true`: the caller has to wake a worker, and when there is none to
    /// wake call [`WakeGate::arrive`]. `false`: one is on its way and will see to it.
    #[must_use]
    pub fn ask(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let next = match state {
                QUIET => WAKING,
                _ => WAKING_MORE,
            };
            // Also when nothing changes: the exchange is what orders the caller's queueing before the other's look.
            let exchange =
                self.state
                    .compare_exchange_weak(state, next, Ordering::SeqCst, Ordering::Relaxed);
            match exchange {
                Ok(_) => return next == WAKING,
                Err(now) => state = now,
            }
        }
    }

    /// The worker that was called is up and has taken work or found none. `true`: more came since it was called; if
    /// work still waits, the worker asks for the next.
    #[must_use]
    pub fn arrive(&self) -> bool {
        self.state.swap(QUIET, Ordering::SeqCst) == WAKING_MORE
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_is_called_and_hears_of_the_rest() {
        let gate = WakeGate::default();
        assert!(gate.ask());
        assert!(!gate.ask() && !gate.ask());
        assert!(gate.arrive());
        assert!(gate.ask());
        assert!(!gate.arrive());
    }
}
