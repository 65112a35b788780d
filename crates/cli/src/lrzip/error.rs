//! The error of a run.

/// Why a run fails.
#[derive(Debug)]
pub enum RunError {
    /// Still to be printed.
    Message(String),
    /// Already printed, or impossible to print.
    Reported,
    /// A signal ended the run, which was reported. The exit code.
    Interrupted(u8),
}

impl From<crate::failure::Failure> for RunError {
    fn from(failure: crate::failure::Failure) -> RunError {
        RunError::Message(failure.to_string())
    }
}
