//! Reads from a pipe that may stay silent, while still reacting to signals.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_pool::suspend_until_readable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::session::Session;

/// Time between two checks of the flag: short enough to feel immediate.
const CHECK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A file that is read only when data is available, until the session is cancelled.
///
/// A thread blocked in `read` on a silent pipe cannot be cancelled: the system delivers signals to
/// any thread, and the standard library repeats an interrupted read. This reader waits in `poll`
/// instead and checks the flag at intervals. Regular files are always ready.
///
/// In a job that can be suspended, others run while it waits, and the engine checks the flag.
#[derive(Debug)]
pub struct CancellableReader {
    file: File,
    cancelled: Arc<AtomicBool>,
}

impl CancellableReader {
    /// Reads `file` until the session is cancelled.
    pub fn new(file: File, session: &Session) -> CancellableReader {
        CancellableReader {
            file,
            cancelled: session.shared_cancel_flag(),
        }
    }

    /// Waits for data, the end, or an error.
    fn wait(&self) -> io::Result<()> {
        if suspend_until_readable(&self.file) {
            return Ok(());
        }
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                // Not `Interrupted`, on which callers retry.
                return Err(io::Error::other("cancelled while waiting for input"));
            }
            let mut files = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut files, Some(&CHECK_INTERVAL)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for CancellableReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait()?;
            match self.file.read(buffer) {
                // In non-blocking mode, where another process may have taken the data.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}
