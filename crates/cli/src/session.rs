//! One run of the program: its name, and whether it was asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// What every verb may need to know about the run.
#[derive(Debug)]
pub struct Session {
    /// The name we were called by, for messages.
    pub program: &'static str,
    cancelled: Arc<AtomicBool>,
}

impl Session {
    /// Starts listening to signals. The first one asks for an orderly end, which drops (and so
    /// removes) unpublished output, also while we wait for a silent pipe; the second one ends the
    /// process at once, for whatever else keeps the first from being heard.
    pub fn start(program: &'static str) -> Session {
        let cancelled = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the shutdown must look at the flag before this signal sets it.
            // Registration fails only for forbidden signals, of which these are none.
            let _ = flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                Arc::clone(&cancelled),
            );
            let _ = flag::register(signal, Arc::clone(&cancelled));
        }
        Session { program, cancelled }
    }

    /// The flag, to be kept by what outlives this borrow.
    pub fn shared_cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// The flag that the engine looks at.
    pub fn cancel_flag(&self) -> &AtomicBool {
        &self.cancelled
    }

    /// Whether a signal asked us to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
