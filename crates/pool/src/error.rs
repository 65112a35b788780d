//! What can go wrong here: memory that is not to be had, and jobs that panic.

use std::any::Any;
use std::fmt;

use crate::lane::Lane;

/// A failure of the runtime itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system would not give the memory asked for.
    MemoryUnavailable {
        /// What was asked for; `u64::MAX` when the request does not fit in 64 bits.
        length_bytes: u64,
        /// What the operating system or the allocator said.
        reason: String,
    },
    /// The operating system would not give a single thread.
    ThreadUnavailable,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::MemoryUnavailable {
                length_bytes,
                reason,
            } => write!(formatter, "no memory for {length_bytes} bytes: {reason}"),
            Error::ThreadUnavailable => write!(formatter, "no thread to be had"),
        }
    }
}

impl std::error::Error for Error {}

/// A job panicked. Its worker survived; whatever the job owned was dropped while unwinding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPanicked {
    /// The lane it ran in.
    pub lane: Lane,
    /// The panic's message, or a stand-in when the payload was not a string.
    pub message: String,
}

impl JobPanicked {
    pub(crate) fn new(lane: Lane, payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&'static str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "(panic payload is not a string)".to_owned());
        JobPanicked { lane, message }
    }
}

impl fmt::Display for JobPanicked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a job in lane {:?} panicked: {}",
            self.lane, self.message
        )
    }
}

impl std::error::Error for JobPanicked {}
