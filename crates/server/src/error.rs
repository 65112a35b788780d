//! What can go wrong while an archive is served.

use std::fmt;
use std::io;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of a handler. What concerns one request or one client is answered to that client and
/// is no such error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The archive cannot be read.
    Archive(refrain::Error),
    /// The system refused something: what was attempted, and its error.
    System(String, io::Error),
    /// What was asked for cannot be served; the text says why.
    Refused(String),
}

impl Error {
    /// A failure of the system while `what` was attempted.
    pub fn system(what: impl Into<String>, error: io::Error) -> Error {
        Error::System(what.into(), error)
    }

    /// With the name of what the archive's error is about.
    pub(crate) fn in_file(self, name: impl Into<String>) -> Error {
        match self {
            Error::Archive(error) => Error::Archive(error.in_file(name)),
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Archive(error) => error.fmt(f),
            Error::System(what, error) => write!(f, "{what}: {error}"),
            Error::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Archive(error) => Some(error),
            Error::System(_, error) => Some(error),
            Error::Refused(_) => None,
        }
    }
}

impl From<refrain::Error> for Error {
    fn from(error: refrain::Error) -> Error {
        Error::Archive(error)
    }
}
