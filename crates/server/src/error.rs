//! Errors of serving an archive.

use std::fmt;
use std::io;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of a handler. Failures of one request or client are answered to that client instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The archive cannot be read.
    Archive(refrain::Error),
    /// The system refused something: what was attempted, and the system's error.
    System(String, io::Error),
    /// The request cannot be served; the text says why.
    Refused(String),
}

impl Error {
    /// A failure of the system while attempting `what`.
    pub fn system(what: impl Into<String>, error: io::Error) -> Error {
        Error::System(what.into(), error)
    }

    /// Adds the name of the file that an archive's error concerns.
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
