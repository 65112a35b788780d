//! One run of the program: its name, and the signal that asked it to end.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use refrain_pool::{Cancellation, Event, Lock, SignalDelivery, start_detached};
use refrain_storage::remove_leftovers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use crate::exit::Exit;
use crate::hangups::Hangups;
use crate::inherited::remember_children;
use crate::messages;
use crate::signals::{Signals, signals};

/// The time for an orderly end.
const GRACE: Duration = Duration::from_secs(2);

/// Some programs, such as `timeout`, signal the process and then its group. What comes within this
/// time after the first signal is the same request.
const SAME_REQUEST: Duration = Duration::from_millis(100);

/// What verbs may need to know about the run.
#[derive(Debug)]
pub struct Session {
    /// The name by which the program was called, for messages.
    pub program: &'static str,
    /// Files that the run writes besides its outputs: profiles and traces.
    pub own_outputs: Vec<PathBuf>,
    cancellation: Cancellation,
    bell: Arc<Bell>,
    /// The latest signal; 0 for none.
    signal: Arc<AtomicUsize>,
    /// Whether a signal ends the process at once, because there is nothing to clean up yet.
    ends_at_once: Arc<AtomicBool>,
    ending: SignalEnding,
    /// Tells of SIGHUP, if that does not ask for an end.
    hangups: Option<Arc<Hangups>>,
}

/// Becomes readable when a signal asks the run to end. Made for the first who needs it: descriptors
/// may be few.
#[derive(Debug, Default)]
struct Bell(Lock<Option<Sockets>>);

/// Two connected sockets: the first becomes readable when something is written to the second.
#[derive(Debug)]
struct Sockets(Arc<UnixStream>, UnixStream);

impl Bell {
    /// Who gets the socket has to look afterwards whether there was a signal. `None` if the system
    /// refuses it.
    fn socket(&self) -> Option<Arc<UnixStream>> {
        let mut sockets = self.0.lock();
        if sockets.is_none() {
            let (ours, theirs) = UnixStream::pair().ok()?;
            *sockets = Some(Sockets(Arc::new(ours), theirs));
        }
        sockets.as_ref().map(|Sockets(ours, _)| Arc::clone(ours))
    }

    fn ring(&self) {
        if let Some(Sockets(_, theirs)) = &*self.0.lock() {
            // Nobody reads, so it rings forever. Its buffer has room for a byte.
            let _ = (&*theirs).write(b"!");
        }
    }
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
        let session = Session::prepare(program, ending, signals());
        session.require_orderly_end();
        session
    }

    /// As [`Session::start`], for a service: SIGHUP asks it to read its files again
    /// ([`Session::next_hangup`]). Only that of a terminal that is gone asks for an end.
    ///
    /// With `leaves_terminal`, the service is about to go on without one.
    pub fn start_service(program: &'static str, leaves_terminal: bool) -> Session {
        let ends = signals().filter(|&signal| signal != SIGHUP);
        let mut session = Session::prepare(program, SignalEnding::Shell, ends);
        let is_heeded = signals().any(|signal| signal == SIGHUP);
        session.hangups = is_heeded.then(|| Hangups::start(leaves_terminal));
        session.require_orderly_end();
        session
    }

    /// What happens at the next SIGHUP that asks a service to read its files again.
    pub fn next_hangup(&self) -> Arc<Event> {
        self.hangups
            .as_ref()
            .map_or_else(Arc::default, |hangups| hangups.next())
    }

    /// As [`Session::start`], for runs that may take milliseconds and leave nothing behind: the
    /// first signal ends the process, and no thread is started, until
    /// [`require_orderly_end`](Session::require_orderly_end).
    pub fn for_short_run(program: &'static str) -> Session {
        Session::prepare(program, SignalEnding::Shell, signals())
    }

    fn prepare(
        program: &'static str,
        ending: SignalEnding,
        ends: impl Iterator<Item = i32>,
    ) -> Session {
        let cancellation = Cancellation::new();
        let signal = Arc::new(AtomicUsize::new(0));
        let ends_at_once = Arc::new(AtomicBool::new(true));
        remember_children();
        // Exceeding the user's file size limit then fails the write instead of ending the process.
        // Programs started from here do not inherit a handler.
        let _ = flag::register(SIGXFSZ, Arc::default());
        for number in ends {
            let status = i32::from(ending.code(number));
            // Registration fails only for forbidden signals, which these are not.
            let _ = flag::register_conditional_shutdown(number, status, Arc::clone(&ends_at_once));
            let value = usize::try_from(number).unwrap_or_default();
            let _ = flag::register_usize(number, Arc::clone(&signal), value);
            let _ = flag::register(number, cancellation.flag());
        }
        Session {
            program,
            own_outputs: Vec::new(),
            cancellation,
            bell: Arc::default(),
            signal,
            ends_at_once,
            ending,
            hangups: None,
        }
    }

    /// From now on the first signal requests an orderly end.
    pub fn require_orderly_end(&self) {
        if self.ends_at_once.swap(false, Ordering::Relaxed) {
            self.enforce_end();
        }
    }

    /// Calls `work` on a separate thread when a signal asks the run to end, or at once if one has.
    pub fn at_signal(&self, work: impl FnOnce() + Send + 'static) {
        let cancellation = self.cancellation.clone();
        start_detached("at-signal", SignalDelivery::OwnFaults, move || {
            cancellation.event().wait();
            work();
        });
    }

    /// What is cancelled when a signal asks the run to end.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// A socket that becomes readable when a signal asks the run to end, for those who wait for
    /// other descriptors, too. If there was a signal before, only the flag says so. `None` if the
    /// system refuses it.
    pub fn end_descriptor(&self) -> Option<Arc<UnixStream>> {
        self.bell.socket()
    }

    /// The flag that the engine checks.
    pub fn cancel_flag(&self) -> &AtomicBool {
        self.cancellation.event().flag()
    }

    /// The flag, for owners that outlive this borrow.
    pub fn shared_cancel_flag(&self) -> Arc<AtomicBool> {
        self.cancellation.flag()
    }

    /// Whether a signal asked the run to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// The exit code if a signal asked the run to end.
    pub fn signal_exit(&self) -> Option<Exit> {
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default();
        self.is_cancelled().then(|| Exit::from_signal(signal))
    }

    /// Wakes those who wait, once there is a signal. Ends the process if it has not ended within
    /// [`GRACE`] from then, or at the second signal, and removes unpublished output.
    ///
    /// Not by a timer of the pool: what does not end may be the pool.
    fn enforce_end(&self) {
        let (program, ending) = (self.program, self.ending);
        let (cancellation, bell) = (self.cancellation.clone(), Arc::clone(&self.bell));
        let signal = Arc::clone(&self.signal);
        let wait = move |mut signals: Signals| {
            // One may have come before these were registered.
            while !cancellation.is_cancelled() && !signals.wait(None) {}
            let first = Instant::now();
            let signal = i32::try_from(signal.load(Ordering::Relaxed)).unwrap_or_default();
            cancellation.cancel();
            bell.ring();
            while let Some(left) = GRACE.checked_sub(first.elapsed()) {
                if signals.wait(Some(left)) && first.elapsed() > SAME_REQUEST {
                    break;
                }
            }
            remove_leftovers();
            ending.report(program, signal);
            low_level::exit(ending.code(signal).into());
        };
        let ends = signals().filter(|&signal| self.hangups.is_none() || signal != SIGHUP);
        // If this fails, only the orderly end remains.
        if let Ok(signals) = Signals::new(ends) {
            start_detached("signals", SignalDelivery::All, move || wait(signals));
        }
    }

    /// Reports in lrzip's words that a signal ended the run. Returns the exit code.
    #[cfg(feature = "lrzip")]
    pub fn interrupted(&self) -> u8 {
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default();
        self.ending.report(self.program, signal);
        self.ending.code(signal)
    }
}
