//! What went wrong, as a number and a text.

use std::any::Any;
use std::io;

use refrain::{Error, ErrorKind};

use crate::numbers::{
    REFRAIN_ERROR_CANCELLED, REFRAIN_ERROR_DAMAGED, REFRAIN_ERROR_INTERNAL, REFRAIN_ERROR_IO,
    REFRAIN_ERROR_LIMIT, REFRAIN_ERROR_LOCKED, REFRAIN_ERROR_UNSUPPORTED, REFRAIN_ERROR_USAGE,
};

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One of `REFRAIN_ERROR_…`.
    pub number: i32,
    /// Everything known about it, for people.
    pub message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(number: i32, message: impl Into<String>) -> Failure {
        Failure {
            number,
            message: message.into(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(REFRAIN_ERROR_USAGE, message)
    }

    pub(crate) fn cancelled() -> Failure {
        Failure::new(REFRAIN_ERROR_CANCELLED, "cancelled")
    }

    /// The failure for what a panic left behind.
    pub(crate) fn from_panic(payload: &(dyn Any + Send)) -> Failure {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("without a message");
        Failure::new(REFRAIN_ERROR_INTERNAL, format!("a defect: {text}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let number = match error.kind {
            ErrorKind::Usage if error.is_locked() => REFRAIN_ERROR_LOCKED,
            ErrorKind::Usage => REFRAIN_ERROR_USAGE,
            ErrorKind::Damaged => REFRAIN_ERROR_DAMAGED,
            ErrorKind::Unsupported => REFRAIN_ERROR_UNSUPPORTED,
            ErrorKind::Limit => REFRAIN_ERROR_LIMIT,
            ErrorKind::Io => REFRAIN_ERROR_IO,
            ErrorKind::Cancelled => REFRAIN_ERROR_CANCELLED,
            _ => REFRAIN_ERROR_INTERNAL,
        };
        Failure::new(number, error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::from(Error::from(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_exit_codes_of_the_command_line() {
        for kind in [
            ErrorKind::Usage,
            ErrorKind::Damaged,
            ErrorKind::Unsupported,
            ErrorKind::Limit,
            ErrorKind::Io,
            ErrorKind::Internal,
            ErrorKind::Cancelled,
        ] {
            let failure = Failure::from(Error::new(kind, "why"));
            assert_eq!(failure.number, -(kind as i32));
            assert_eq!(failure.message, "why");
        }
    }

    #[test]
    fn a_panic_becomes_a_message() {
        let number = 7;
        for (message, expected) in [
            (
                std::panic::catch_unwind(|| panic!("plain")),
                "a defect: plain",
            ),
            (
                std::panic::catch_unwind(move || panic!("number {number}")),
                "a defect: number 7",
            ),
            (
                std::panic::catch_unwind(|| std::panic::panic_any(5)),
                "a defect: without a message",
            ),
        ] {
            let message: std::thread::Result<()> = message;
            let failure = Failure::from_panic(&*message.unwrap_err());
            assert_eq!(failure.message, expected);
        }
    }
}
