//! What can be wrong with a compressed file, and where.

use std::fmt;
use std::io;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file of another format cannot be read. Offsets are in the compressed file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The input could not be read.
    Io(io::Error),
    /// The bytes are not what the format requires, or a checksum differs.
    Damaged {
        /// Where this was noticed.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The file ends before its content does.
    Truncated {
        /// The length of the file.
        offset: u64,
        /// The part that is not complete.
        what: &'static str,
    },
    /// The file needs something that this reader does not have.
    Unsupported {
        /// Where it is needed.
        offset: u64,
        /// What is missing.
        what: String,
    },
    /// More memory is needed than the reader may use.
    Memory {
        /// Where it is needed.
        offset: u64,
        /// What needs it.
        what: String,
        /// The memory that the reader may use.
        allowed_bytes: u64,
    },
}

impl Error {
    pub(crate) fn damaged(offset: u64, what: impl Into<String>) -> Error {
        Error::Damaged {
            offset,
            what: what.into(),
        }
    }

    pub(crate) fn unsupported(offset: u64, what: impl Into<String>) -> Error {
        Error::Unsupported {
            offset,
            what: what.into(),
        }
    }

    /// The offset in the compressed file, if the failure has one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::Io(_) => None,
            Error::Damaged { offset, .. }
            | Error::Truncated { offset, .. }
            | Error::Unsupported { offset, .. }
            | Error::Memory { offset, .. } => Some(*offset),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(f),
            Error::Damaged { what, .. } | Error::Unsupported { what, .. } => f.write_str(what),
            Error::Truncated { what, .. } => write!(f, "the file ends inside {what}"),
            Error::Memory {
                what,
                allowed_bytes,
                ..
            } => {
                let allowed = allowed_bytes >> 20;
                write!(
                    f,
                    "{what}, and {allowed} MiB are allowed: raise the memory limit"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}
