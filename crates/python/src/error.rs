//! The engine's errors as exceptions, which `refrain/_errors.py` defines.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use refrain::{Error, ErrorKind};

/// The function that makes exceptions.
static FROM_ENGINE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Usage => "usage",
        ErrorKind::Damaged => "damaged",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Limit => "limit",
        ErrorKind::Io => "storage",
        ErrorKind::Cancelled => "cancelled",
        _ => "internal",
    }
}

/// The first error of the system among the causes.
fn system_error<'a>(mut cause: &'a (dyn StdError + 'static)) -> Option<&'a io::Error> {
    let mut found = None;
    loop {
        let next = match cause.downcast_ref::<io::Error>() {
            Some(error) => {
                found = Some(error);
                match error.get_ref() {
                    Some(inner) => inner as &(dyn StdError + 'static),
                    None => return found,
                }
            }
            None => match cause.source() {
                Some(source) => source,
                None => return found,
            },
        };
        cause = next;
    }
}

fn error_number(error: &io::Error) -> Option<i32> {
    use rustix::io::Errno;
    let of_kind = || match error.kind() {
        io::ErrorKind::NotFound => Some(Errno::NOENT),
        io::ErrorKind::PermissionDenied => Some(Errno::ACCESS),
        io::ErrorKind::AlreadyExists => Some(Errno::EXIST),
        io::ErrorKind::OutOfMemory => Some(Errno::NOMEM),
        io::ErrorKind::IsADirectory => Some(Errno::ISDIR),
        io::ErrorKind::NotADirectory => Some(Errno::NOTDIR),
        _ => None,
    };
    error
        .raw_os_error()
        .or_else(|| Some(of_kind()?.raw_os_error()))
}

fn exception(
    py: Python<'_>,
    kind: &str,
    message: &str,
    number: Option<i32>,
    location: (Option<u64>, Option<u64>, Option<u64>),
    path: Option<&Path>,
) -> PyErr {
    let make = FROM_ENGINE.import(py, "refrain._errors", "from_engine");
    let made = make.and_then(|make| make.call1((kind, message, number, location, path)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception for an error of the engine.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let found = system_error(&*error.cause);
    let place = &error.location;
    exception(
        py,
        if error.is_locked() { "locked" } else { kind_name(error.kind) },
        &error.to_string(),
        found.and_then(error_number),
        (place.archive_offset, place.block, place.content_offset),
        None,
    )
}

/// The exception for a call that is invalid.
pub fn usage(py: Python<'_>, text: &str) -> PyErr {
    exception(py, "usage", text, None, (None, None, None), None)
}

/// The exception for an error of the system.
pub fn storage(py: Python<'_>, error: io::Error) -> PyErr {
    to_python(py, &Error::from(error))
}

/// The exception for an error of the system with a file.
pub fn of_file(py: Python<'_>, error: &io::Error, path: &Path) -> PyErr {
    let number = system_error(error).and_then(error_number);
    let (text, location) = (error.to_string(), (None, None, None));
    exception(py, "storage", &text, number, location, Some(path))
}
