//! Opening below a directory.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::path::Arg;

/// Opens a path below a directory, retrying if a signal interrupts it: file systems on networks and
/// in user space let a signal end an open (POSIX `openat`, `EINTR`); the standard library retries
/// as well. Every open by descriptor in the project goes through here.
///
/// # Errors
/// As `openat`, except `EINTR`.
pub fn open_at(
    directory: impl AsFd,
    path: impl Arg,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let directory = directory.as_fd();
    path.into_with_c_str(|path| {
        // The one place where it may be called.
        #[allow(clippy::disallowed_methods)]
        retry_on_intr(|| rustix::fs::openat(directory, path, flags, mode))
    })
}
