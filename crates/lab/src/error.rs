//! Errors that stop an experiment.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Errors that stop an experiment.
#[derive(Debug)]
pub enum Error {
    /// The run was cancelled.
    Cancelled,
    /// An operation of the operating system failed.
    System {
        /// The operation, as a verb: "create a file in".
        action: &'static str,
        /// Its object: a path, "a pipe".
        object: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The file system has too little space.
    NoSpace {
        /// The directory.
        directory: PathBuf,
        /// The bytes that the experiment needs.
        needed_bytes: u64,
        /// The free bytes.
        available_bytes: u64,
    },
    /// The system refused a thread.
    NoThread,
    /// A thread of an experiment ended without a result.
    ThreadLost,
    /// The pool refused memory.
    Pool(refrain_pool::Error),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The kind of the system's error, if it is one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Error::System { cause, .. } => Some(cause.kind()),
            Error::NoSpace { .. } => Some(io::ErrorKind::StorageFull),
            _ => None,
        }
    }
}

/// Adds action and object to an error of the system.
pub(crate) fn at(action: &'static str, object: &Path) -> impl Fn(io::Error) -> Error {
    let object = object.to_owned();
    move |cause| Error::System {
        action,
        object: object.clone(),
        cause,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cancelled => write!(formatter, "cancelled"),
            Error::System {
                action,
                object,
                cause,
            } => write!(formatter, "cannot {action} {}: {cause}", object.display()),
            Error::NoSpace {
                directory,
                needed_bytes,
                available_bytes,
            } => write!(
                formatter,
                "{}: the experiment needs {needed_bytes} bytes, and {available_bytes} are free",
                directory.display()
            ),
            Error::NoThread => write!(formatter, "the system refuses another thread"),
            Error::ThreadLost => write!(formatter, "a measuring thread ended without a result"),
            Error::Pool(error) => write!(formatter, "{error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { cause, .. } => Some(cause),
            Error::Pool(error) => Some(error),
            _ => None,
        }
    }
}

impl From<refrain_pool::Error> for Error {
    fn from(error: refrain_pool::Error) -> Error {
        Error::Pool(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_values() {
        let error = Error::NoSpace {
            directory: "/full".into(),
            needed_bytes: 70,
            available_bytes: 3,
        };
        let text = error.to_string();
        assert!(text.contains("/full") && text.contains("70") && text.contains("3 are free"));
        assert_eq!(error.io_kind(), Some(io::ErrorKind::StorageFull));
        let denied = at("write", Path::new("/x"))(io::ErrorKind::PermissionDenied.into());
        assert!(denied.to_string().starts_with("cannot write /x: "));
        assert_eq!(denied.io_kind(), Some(io::ErrorKind::PermissionDenied));
    }
}
