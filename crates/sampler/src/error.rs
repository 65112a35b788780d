//! Reasons why sampling is impossible.

use std::fmt;
use std::io;

/// Reasons why sampling is impossible.
#[derive(Debug)]
pub enum Error {
    /// This is not 64-bit Linux on x86.
    Unsupported,
    /// The kernel does not permit it.
    Forbidden {
        /// The kernel's error.
        error: io::Error,
        /// The setting `kernel.perf_event_paranoid`, if there is one.
        paranoid: Option<i64>,
    },
    /// An operation of the system failed.
    System {
        /// The operation: "map the memory for samples".
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A bug ended the thread that reads samples.
    ReaderLost,
}

/// The largest value with which a program may sample itself.
const PARANOID_MAX: i64 = 2;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unsupported => {
                write!(
                    f,
                    "stacks can be sampled only on Linux with x86-64 processors"
                )
            }
            Error::Forbidden { error, paranoid } => {
                write!(f, "the kernel refuses to sample this program ({error}): ")?;
                match paranoid {
                    None => write!(
                        f,
                        "it has no performance events (/proc/sys/kernel/perf_event_paranoid is \
                         missing)"
                    ),
                    Some(value) if *value > PARANOID_MAX => write!(
                        f,
                        "/proc/sys/kernel/perf_event_paranoid is {value}, and more than \
                         {PARANOID_MAX} forbids it (`sysctl kernel.perf_event_paranoid=\
                         {PARANOID_MAX}`)"
                    ),
                    Some(value) => write!(
                        f,
                        "/proc/sys/kernel/perf_event_paranoid is {value}, which allows it, so a \
                         filter of system calls forbids `perf_event_open`, as that of containers \
                         does"
                    ),
                }
            }
            Error::System { action, error } => write!(f, "cannot {action}: {error}"),
            Error::ReaderLost => write!(f, "the thread that reads samples has ended"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Forbidden { error, .. } | Error::System { error, .. } => Some(error),
            Error::Unsupported | Error::ReaderLost => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_it_is_named() {
        let text = |paranoid| {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            Error::Forbidden { error, paranoid }.to_string()
        };
        assert!(text(Some(3)).contains("perf_event_paranoid is 3, and more than 2"));
        assert!(text(Some(2)).contains("filter of system calls"));
        assert!(text(None).contains("no performance events"));
    }
}
