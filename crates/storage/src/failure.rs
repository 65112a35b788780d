//! Errors with the operation and the path they concern.

use std::io;
use std::path::{Path, PathBuf};

/// The operation that failed and its path; inside every [`io::Error`] of this crate about a path.
///
/// Find it with [`Failure::inside`]; the operating system's own error is its
/// [`source`](std::error::Error::source).
#[derive(Debug)]
pub struct Failure {
    /// The operation, as a verb: "open", "read", "publish".
    pub operation: &'static str,
    /// The path of the file, or the name of the stream.
    pub path: PathBuf,
    /// The error of the operating system.
    pub cause: io::Error,
}

impl Failure {
    /// The failure inside `error`, if there is one.
    pub fn inside(error: &io::Error) -> Option<&Failure> {
        error.get_ref()?.downcast_ref()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure {
            operation,
            path,
            cause,
        } = self;
        write!(formatter, "cannot {operation} {}: {cause}", path.display())
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Adds operation and path to an error and keeps its kind.
pub(crate) fn at<'path>(
    operation: &'static str,
    path: &'path Path,
) -> impl Fn(io::Error) -> io::Error + 'path {
    move |cause| {
        // Errors of an inner layer have them already.
        if Failure::inside(&cause).is_some() {
            return cause;
        }
        let failure = Failure {
            operation,
            path: path.to_owned(),
            cause,
        };
        io::Error::new(failure.cause.kind(), failure)
    }
}

/// An error that this crate detects itself, with operation and path.
pub(crate) fn refuse(
    operation: &'static str,
    path: &Path,
    kind: io::ErrorKind,
    reason: &str,
) -> io::Error {
    at(operation, path)(io::Error::new(kind, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_operation_path_and_cause_and_retains_the_kind() {
        let cause = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        let error = at("write", Path::new("dir/name"))(cause);
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(text.starts_with("cannot write dir/name: "), "{text}");
        let again = at("publish", Path::new("other"))(error);
        assert_eq!(again.to_string(), text);
        let raw = Failure::inside(&again).unwrap().cause.raw_os_error();
        assert_eq!(raw, Some(rustix::io::Errno::NOSPC.raw_os_error()));
    }
}
