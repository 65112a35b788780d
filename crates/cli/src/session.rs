//! One run of the program: its name, and whether it was asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use refrain::pool::sentinel;
use refrain::storage::remove_leftovers;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::messages;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Time for an orderly end.
const GRACE: Duration = Duration::from_secs(2);

/// Time between two looks for a second signal.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What every verb may need to know about the run.
#[derive(Debug)]
pub struct Session {
    /// The name we were called by, for messages.
    pub program: &'static str,
    cancelled: Arc<AtomicBool>,
    /// A signal ends the process at once: there is nothing yet that it would leave behind.
    ends_at_once: Arc<AtomicBool>,
}

impl Session {
    /// Starts listening to signals. The first one asks for an orderly end, which drops (and so
    /// removes) unpublished output, also while we wait for a silent pipe. Where that takes longer than
    /// [`GRACE`] (a block of a dense codec takes up to a minute; a named pipe without a writer is waited for
    /// inside `open`) the process ends all the same; with the second signal it ends at once.
    pub fn start(program: &'static str) -> Session {
        let session = Session::of_little(program);
        session.end_in_order();
        session
    }

    /// As [`Session::start`], for what may be over in a moment and leaves nothing behind: the first signal ends the process, and no thread
    /// is made, until somebody asks for an orderly end.
    pub fn of_little(program: &'static str) -> Session {
        let cancelled = Arc::new(AtomicBool::new(false));
        let ends_at_once = Arc::new(AtomicBool::new(true));
        let status = Exit::Interrupted as i32;
        for signal in SIGNALS {
            // Registration fails only for forbidden signals, of which these are none.
            let _ = flag::register_conditional_shutdown(signal, status, Arc::clone(&ends_at_once));
            let _ = flag::register(signal, Arc::clone(&cancelled));
        }
        Session {
            program,
            cancelled,
            ends_at_once,
        }
    }

    /// From now on the first signal asks for an orderly end.
    pub fn end_in_order(&self) {
        if self.ends_at_once.swap(false, Ordering::Relaxed) {
            insist(self.program);
        }
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

/// Ends the process when a signal has not done so within [`GRACE`], or with a second signal, and removes what it would leave.
fn insist(program: &'static str) {
    let wait = move |mut signals: Signals| {
        if signals.forever().next().is_none() {
            return;
        }
        let first = Instant::now();
        while first.elapsed() < GRACE {
            thread::sleep(LOOK_AGAIN);
            // Some programs, `timeout` among them, send to the process and then to its group: that is one request.
            if signals.pending().next().is_some() && first.elapsed() > LOOK_AGAIN * 2 {
                break;
            }
        }
        remove_leftovers();
        messages::tell(program, "interrupted");
        signal_hook::low_level::exit(Exit::Interrupted as i32);
    };
    // Without them an orderly end is all there is.
    if let Ok(signals) = Signals::new(SIGNALS) {
        sentinel("signals", move || wait(signals));
    }
}
