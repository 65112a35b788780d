//! The error of a run.

/// Why a run fails.
#[derive(Debug)]
pub enum RunError {
    /// The message has yet to be printed.
    Message(String),
    /// The message has been printed, or cannot be.
    Reported,
    /// A signal ended the run, which has been reported. The exit code.
    Interrupted(u8),
}

impl From<crate::failure::Failure> for RunError {
    fn from(failure: crate::failure::Failure) -> RunError {
        RunError::Message(failure.to_string())
    }
}
