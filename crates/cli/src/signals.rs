//! The signals that a program heeds, and waiting for them.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::inherited::is_ignored;

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

/// Signals that a thread waits for.
pub struct Signals(backend::SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// These signals, from now on.
    ///
    /// # Errors
    /// If the system refuses sockets.
    pub fn new(numbers: impl IntoIterator<Item = i32>) -> io::Result<Signals> {
        let (ours, theirs) = UnixStream::pair()?;
        let signals = backend::SignalDelivery::with_pipe(ours, theirs, SignalOnly, numbers)?;
        Ok(Signals(signals))
    }

    /// Waits for a signal, for this time at most. Returns whether there was one.
    pub fn wait(&mut self, time_max: Option<Duration>) -> bool {
        let timeout = time_max.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut descriptors = [PollFd::new(self.0.get_read(), PollFlags::IN)];
        // Interrupted by the signal itself, it leaves the signal pending.
        let _ = poll(&mut descriptors, timeout.as_ref());
        self.0.pending().next().is_some()
    }
}
