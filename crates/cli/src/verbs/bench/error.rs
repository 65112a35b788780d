//! Errors while measuring.

use std::io;

/// A failed measurement.
#[derive(Debug)]
pub enum BenchError {
    /// The request is wrong; the text says which part.
    Usage(String),
    /// A file, a directory or a process could not be used.
    Io {
        /// The attempted action, as an infinitive with its object.
        what: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// A contender failed, or its decompressed output differs from its input.
    Failed {
        /// The contender's name in the table.
        contender: String,
        /// What happened, with the end of its standard error.
        reason: String,
    },
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchError::Usage(what) => write!(f, "bench: {what}"),
            BenchError::Io { what, cause } => write!(f, "bench: cannot {what}: {cause}"),
            BenchError::Failed { contender, reason } => write!(f, "bench: {contender}: {reason}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BenchError::Io { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

impl BenchError {
    /// The kind, which decides the exit code.
    pub fn kind(&self) -> refrain::ErrorKind {
        match self {
            BenchError::Usage(_) => refrain::ErrorKind::Usage,
            BenchError::Io { .. } | BenchError::Failed { .. } => refrain::ErrorKind::Io,
        }
    }
}
