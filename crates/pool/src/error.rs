//! Errors: the system refuses memory or threads, or a job panics.

use std::any::Any;
use std::fmt;

use crate::lane::Lane;

/// The system refused a resource.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system or the allocator refused memory.
    MemoryUnavailable {
        /// The size of the request; `u64::MAX` when it does not fit in 64 bits.
        length_bytes: u64,
        /// The message of the operating system or the allocator.
        reason: String,
    },
    /// The operating system refused to start a thread.
    ThreadUnavailable,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::MemoryUnavailable {
                length_bytes,
                reason,
            } => write!(formatter, "cannot allocate {length_bytes} bytes: {reason}"),
            Error::ThreadUnavailable => {
                write!(formatter, "the operating system refused to start a thread")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A job panicked. Its worker continues; what the job owned was dropped during unwinding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPanicked {
    /// The lane of the job.
    pub lane: Lane,
    /// The panic's message, or a placeholder when the payload was not a string.
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
