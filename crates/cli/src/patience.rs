//! Waiting for a pipe that may stay silent, without being deaf to Ctrl-C.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::session::Session;

/// Time between two looks at the flag: short enough to feel immediate.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A file that is read only when there is something to read.
///
/// A thread that sits in `read` on a silent pipe cannot be told to stop: its signals go to whichever
/// thread the system likes, and the standard library tries again. So this one waits in `poll`, and
/// looks at the flag in between. For a regular file there is always something to read.
#[derive(Debug)]
pub struct PatientReader {
    file: File,
    cancelled: Arc<AtomicBool>,
}

impl PatientReader {
    /// Reads `file` until the session is cancelled.
    pub fn new(file: File, session: &Session) -> PatientReader {
        PatientReader {
            file,
            cancelled: session.shared_cancel_flag(),
        }
    }

    /// Returns when there is something to read, or the end, or an error to be read.
    fn wait(&self) -> io::Result<()> {
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                // Not of the kind `Interrupted`, which means "try again".
                return Err(io::Error::other("stopped while waiting for input"));
            }
            let mut files = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut files, Some(&LOOK_AGAIN)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for PatientReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.file.read(buffer)
    }
}
