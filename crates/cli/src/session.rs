//! One run of the program: its name, and the signal that asked it to end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use refrain_pool::{SignalDelivery, start_detached};
use refrain_storage::remove_leftovers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::inherited::{is_ignored, remember_children};
use crate::messages;

/// The signals that ask the program to end. Signals ignored at the start stay ignored: `nohup` does
/// that, and so do shells for background commands.
pub fn signals() -> impl Iterator<Item = i32> {
    // Determined once: later they have handlers.
    static HEEDED: LazyLock<Vec<i32>> = LazyLock::new(|| {
        let signals = [SIGINT, SIGTERM, SIGHUP].into_iter();
        signals.filter(|&signal| !is_ignored(signal)).collect()
    });
    HEEDED.iter().copied()
}

/// The time for an orderly end.
const GRACE: Duration = Duration::from_secs(2);

/// The time between checks for a second signal.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// What verbs may need to know about the run.
#[derive(Debug)]
pub struct Session {
    /// The name by which the program was called, for messages.
    pub program: &'static str,
    /// Files that the run writes besides its outputs: profiles and traces.
    pub own_outputs: Vec<PathBuf>,
    cancelled: Arc<AtomicBool>,
    /// The latest signal; 0 for none.
    signal: Arc<AtomicUsize>,
    /// Whether a signal ends the process at once, because there is nothing to clean up yet.
    ends_at_once: Arc<AtomicBool>,
    ending: SignalEnding,
}

/// The message and exit code of a run ended by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignalEnding {
    /// 128 plus the signal number, as in shells.
    Shell,
    /// As lrzip: 1 for SIGINT and SIGTERM, which it handles. SIGHUP ends it without a message.
    #[cfg_attr(
        not(feature = "lrzip"),
        allow(dead_code, reason = "lrzip's programs alone")
    )]
    Lrzip,
}

impl SignalEnding {
    fn code(self, signal: i32) -> u8 {
        match (self, signal) {
            (SignalEnding::Lrzip, SIGINT | SIGTERM) => 1,
            _ => Exit::from_signal(signal) as u8,
        }
    }

    fn report(self, program: &str, signal: i32) {
        match (self, signal) {
            (SignalEnding::Shell, _) => messages::tell(program, "interrupted"),
            (SignalEnding::Lrzip, SIGINT | SIGTERM) => {
                messages::line("Interrupted\nFatal error - exiting");
            }
            (SignalEnding::Lrzip, _) => {}
        }
    }
}

impl Session {
    /// Starts handling signals. The first signal requests an orderly end, which removes unpublished
    /// output, even while the program waits for a silent pipe. If that takes longer than [`GRACE`]
    /// (encoding a block with a dense codec takes up to a minute; opening a named pipe without a
    /// writer blocks), the process ends anyway; the second signal ends it at once.
    pub fn start(program: &'static str) -> Session {
        Session::start_ending(program, SignalEnding::Shell)
    }

    /// As [`Session::start`], with lrzip's message and exit code.
    #[cfg(feature = "lrzip")]
    pub fn start_as_lrzip(program: &'static str) -> Session {
        Session::start_ending(program, SignalEnding::Lrzip)
    }

    fn start_ending(program: &'static str, ending: SignalEnding) -> Session {
        let session = Session::prepare(program, ending);
        session.require_orderly_end();
        session
    }

    /// As [`Session::start`], for runs that may take milliseconds and leave nothing behind: the
    /// first signal ends the process, and no thread is started, until
    /// [`require_orderly_end`](Session::require_orderly_end).
    pub fn for_short_run(program: &'static str) -> Session {
        Session::prepare(program, SignalEnding::Shell)
    }

    fn prepare(program: &'static str, ending: SignalEnding) -> Session {
        let cancelled = Arc::new(AtomicBool::new(false));
        let signal = Arc::new(AtomicUsize::new(0));
        let ends_at_once = Arc::new(AtomicBool::new(true));
        remember_children();
        // Exceeding the user's file size limit then fails the write instead of ending the process.
        // Programs started from here do not inherit a handler.
        let _ = flag::register(SIGXFSZ, Arc::default());
        for number in signals() {
            let status = i32::from(ending.code(number));
            // Registration fails only for forbidden signals, which these are not.
            let _ = flag::register_conditional_shutdown(number, status, Arc::clone(&ends_at_once));
            let value = usize::try_from(number).unwrap_or_default();
            let _ = flag::register_usize(number, Arc::clone(&signal), value);
            let _ = flag::register(number, Arc::clone(&cancelled));
        }
        Session {
            program,
            own_outputs: Vec::new(),
            cancelled,
            signal,
            ends_at_once,
            ending,
        }
    }

    /// From now on the first signal requests an orderly end.
    pub fn require_orderly_end(&self) {
        if self.ends_at_once.swap(false, Ordering::Relaxed) {
            enforce_end(self.program, self.ending);
        }
    }

    /// Calls `work` on a separate thread when a signal asks the run to end, or at once if one has.
    pub fn at_signal(&self, work: impl FnOnce() + Send + 'static) {
        let cancelled = Arc::clone(&self.cancelled);
        let wait = move |mut signals: Signals| {
            // Registered before this check, so that no signal is missed in between.
            if cancelled.load(Ordering::Relaxed) || signals.forever().next().is_some() {
                work();
            }
        };
        if let Ok(signals) = Signals::new(signals()) {
            start_detached("at-signal", SignalDelivery::All, move || wait(signals));
        }
    }

    /// The flag, for owners that outlive this borrow.
    pub fn shared_cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// The flag that the engine checks.
    pub fn cancel_flag(&self) -> &AtomicBool {
        &self.cancelled
    }

    /// Whether a signal asked the run to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The exit code if a signal asked the run to end.
    pub fn signal_exit(&self) -> Option<Exit> {
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default();
        self.is_cancelled().then(|| Exit::from_signal(signal))
    }

    /// Reports in lrzip's words that a signal ended the run. Returns the exit code.
    #[cfg(feature = "lrzip")]
    pub fn interrupted(&self) -> u8 {
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default();
        self.ending.report(self.program, signal);
        self.ending.code(signal)
    }
}

/// Ends the process if it has not ended within [`GRACE`] after a signal, or at the second signal,
/// and removes unpublished output.
fn enforce_end(program: &'static str, ending: SignalEnding) {
    let wait = move |mut signals: Signals| {
        let Some(signal) = signals.forever().next() else {
            return;
        };
        let first = Instant::now();
        while first.elapsed() < GRACE {
            thread::sleep(CHECK_INTERVAL);
            // Some programs, such as `timeout`, signal the process and then its group: that is a
            // single request.
            if signals.pending().next().is_some() && first.elapsed() > CHECK_INTERVAL * 2 {
                break;
            }
        }
        remove_leftovers();
        ending.report(program, signal);
        signal_hook::low_level::exit(ending.code(signal).into());
    };
    // If this fails, only the orderly end remains.
    if let Ok(signals) = Signals::new(signals()) {
        start_detached("signals", SignalDelivery::All, move || wait(signals));
    }
}
