//! SIGHUP as services understand it: a request to read their files again.

use std::fs::File;
use std::sync::Arc;

use refrain_pool::{Event, Lock, SignalDelivery, start_detached};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::low_level;

use crate::signals::Signals;

/// Tells of SIGHUP.
#[derive(Debug, Default)]
pub struct Hangups {
    next: Lock<Arc<Event>>,
}

impl Hangups {
    /// Begins to wait for the signal, which no longer ends the process.
    ///
    /// The system also sends it to the programs of a terminal that is gone. A service that was
    /// started there is asked to end, as any program.
    /// With `leaves_terminal`, the process is about to go on without one.
    pub fn start(leaves_terminal: bool) -> Arc<Hangups> {
        let hangups = Arc::<Hangups>::default();
        // Without sockets or a thread the signal does what it does by default.
        if let Ok(mut signals) = Signals::new([SIGHUP]) {
            let had_terminal = has_terminal() && !leaves_terminal;
            let own = Arc::clone(&hangups);
            start_detached("hangups", SignalDelivery::All, move || {
                loop {
                    if !signals.wait(None) {
                        continue;
                    }
                    if had_terminal && !has_terminal() {
                        // It cannot fail for a signal that exists.
                        let _ = low_level::raise(SIGTERM);
                    } else {
                        std::mem::take(&mut *own.next.lock()).happen();
                    }
                }
            });
        }
        hangups
    }

    /// What happens at the next signal.
    pub fn next(&self) -> Arc<Event> {
        Arc::clone(&self.next.lock())
    }
}

/// Whether the process has a terminal: none if it is gone.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}
