//! Waits for the sockets of reads.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::read::Read;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Some socket can be read or written to, or the system interrupted the wait.
    Ready,
    /// The time is over.
    Time,
}

/// Waits until one of the reads can go on, for at most so many nanoseconds.
pub fn wait<'a>(reads: impl IntoIterator<Item = &'a Read>, duration_ns: u64) -> Waited {
    let mut sockets: Vec<_> = reads
        .into_iter()
        .flat_map(Read::sockets)
        .map(|(socket, is_sending)| {
            let flags = if is_sending { PollFlags::OUT } else { PollFlags::IN };
            PollFd::from_borrowed_fd(socket, flags)
        })
        .collect();
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
