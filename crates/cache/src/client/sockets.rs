//! Waits for sockets.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Some socket can be read or written to, or the system interrupted the wait.
    Ready,
    /// The time is over.
    Time,
}

/// Waits until one of these sockets can be read, or written to if that is said of it.
pub(super) fn wait_for_sockets<'a>(
    sockets: impl Iterator<Item = (BorrowedFd<'a>, bool)>,
    duration_ns: u64,
) -> Waited {
    let sockets = sockets.map(|(socket, is_sending)| {
        let flags = if is_sending { PollFlags::OUT } else { PollFlags::IN };
        PollFd::from_borrowed_fd(socket, flags)
    });
    let mut sockets: Vec<_> = sockets.collect();
    let timeout = Timespec {
        tv_sec: (duration_ns / 1_000_000_000) as i64,
        tv_nsec: (duration_ns % 1_000_000_000) as i64,
    };
    match poll(&mut sockets, Some(&timeout)) {
        Ok(0) => Waited::Time,
        Ok(_) | Err(Errno::INTR) => Waited::Ready,
        Err(_) => Waited::Time,
    }
}
