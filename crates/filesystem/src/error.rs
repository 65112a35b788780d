//! Errors with the path they concern, and errors about the stream itself.

use std::io;
use std::path::Path;

/// An error of kind `InvalidData`: the stream is malformed, or asks for something refused.
pub(crate) fn refused(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Adds an action and the path it concerns to an error of the operating system.
pub(crate) fn named(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |error| io::Error::new(error.kind(), format!("cannot {action} {path}: {error}"))
}
