//! One open directory of a restore.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use rustix::fs::Mode;

/// Directories are created for their owner only; they get their final mode last.
pub(super) const NEW_DIRECTORY_MODE: Mode = Mode::RWXU;

#[derive(Debug)]
pub(super) struct Directory {
    descriptor: OwnedFd,
    /// Whether entries created in it inherit an access control list, which is to be removed.
    pub(super) gives_acl: bool,
    /// Whether hidden files of killed processes were already removed.
    pub(super) is_cleaned: AtomicBool,
}

impl Directory {
    pub(super) fn new(descriptor: OwnedFd, gives_acl: bool) -> Directory {
        Directory {
            descriptor,
            gives_acl,
            is_cleaned: AtomicBool::new(false),
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The error for an entry whose name is in use.
pub(super) fn already_exists(detail: &str) -> io::Error {
    let text = match detail {
        "" => "already exists".to_string(),
        detail => format!("already exists and {detail}"),
    };
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}
