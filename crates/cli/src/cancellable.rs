//! Reads from a pipe that may stay silent, while still reacting to signals.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use refrain_pool::{Cancellation, suspend_until_readable};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::session::Session;

/// A file that is read only when data is available, until the session is cancelled.
///
/// A thread blocked in `read` on a silent pipe cannot be cancelled: the system delivers signals to
/// any thread, and the standard library repeats an interrupted read. This reader waits in `poll`
/// instead, also for the descriptor that a signal makes readable. Regular files are always ready.
///
/// In a job that can be suspended, others run while it waits, and the engine checks the flag.
#[derive(Debug)]
pub struct CancellableReader {
    file: File,
    cancellation: Cancellation,
    end: Option<Arc<UnixStream>>,
}

impl CancellableReader {
    /// Reads `file` until the session is cancelled.
    pub fn new(file: File, session: &Session) -> CancellableReader {
        CancellableReader {
            file,
            cancellation: session.cancellation().clone(),
            end: session.end_descriptor(),
        }
    }

    /// Waits for data, the end, or an error.
    fn wait(&self) -> io::Result<()> {
        if suspend_until_readable(&self.file) {
            return Ok(());
        }
        loop {
            if self.cancellation.is_cancelled() {
                // Not `Interrupted`, on which callers retry.
                return Err(io::Error::other("cancelled while waiting for input"));
            }
            let mut files: Vec<_> = [PollFd::new(&self.file, PollFlags::IN)]
                .into_iter()
                .chain(self.end.iter().map(|end| PollFd::new(end, PollFlags::IN)))
                .collect();
            match poll(&mut files, None) {
                Ok(_) if files[0].revents().is_empty() => {}
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
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
