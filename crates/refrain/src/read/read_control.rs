//! Controls a read, and describes the runs of a range, for serving an archive.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain_sync::clock::RealClock;

use crate::error::{Error, ErrorKind, Result};

/// How a read is performed.
#[derive(Debug, Clone, Default)]
pub struct ReadControl {
    /// Called before the read waits.
    pub before_waiting: Option<BeforeWaiting>,
    /// If it becomes `true`, the read ends before the next block.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// Once it has passed, the read fails before the next block.
    pub deadline: Option<Deadline>,
}

/// Called before a read takes time: something is read from the source, or decoded, by this thread
/// or by another one that has begun. It may be called several times, and is not called if the whole
/// range is in memory.
#[derive(Clone)]
pub struct BeforeWaiting(pub Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for BeforeWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BeforeWaiting")
    }
}

impl ReadControl {
    /// Whether the read should end.
    pub fn is_cancelled(&self) -> bool {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        self.cancelled.as_ref().is_some_and(is_set)
    }

    /// Whether the read still has to be answered.
    ///
    /// # Errors
    /// `Cancelled` if the reader has left; `Io` after the deadline.
    pub(crate) fn go_on(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::cancelled());
        }
        if let Some(deadline) = &self.deadline
            && deadline.has_passed()
        {
            let text = format!("the read took longer than {:?}", deadline.time);
            return Err(Error::new(ErrorKind::Io, text));
        }
        Ok(())
    }

    /// Called before something is read from the source, or waited for.
    ///
    /// # Errors
    /// As [`ReadControl::go_on`].
    pub(crate) fn before_waiting(&self) -> Result<()> {
        self.go_on()?;
        if let Some(BeforeWaiting(call)) = &self.before_waiting {
            call();
        }
        Ok(())
    }
}

/// A time limit, starting when it is created.
///
/// It is compared with the time before each block, where a read can end, and ends no wait. A timer
/// that fires in between could only set a flag for the same place, and to add and cancel one takes
/// longer than a small read from memory, which does not look at the time.
#[derive(Debug, Clone)]
pub struct Deadline {
    clock: RealClock,
    time: Duration,
}

impl Deadline {
    /// A deadline after this time.
    pub fn after(time: Duration) -> Deadline {
        let clock = RealClock::new();
        Deadline { clock, time }
    }

    /// Whether the time is over.
    pub fn has_passed(&self) -> bool {
        Duration::from_nanos(self.clock.now_ns()) > self.time
    }
}

/// A part of a range of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Its length in bytes; never 0.
    pub length_bytes: u64,
    /// Whether all of it is known to be zeros: a fill outside of any block.
    pub is_zero: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_ends_by_its_deadline_and_when_the_reader_leaves() {
        let kind = |control: &ReadControl| control.before_waiting().map_err(|error| error.kind);
        let left = Arc::new(AtomicBool::new(false));
        let mut control = ReadControl {
            cancelled: Some(Arc::clone(&left)),
            deadline: Some(Deadline::after(Duration::from_secs(3600))),
            ..ReadControl::default()
        };
        assert_eq!(kind(&control), Ok(()));
        control.deadline = Some(Deadline::after(Duration::ZERO));
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(kind(&control), Err(ErrorKind::Io));
        left.store(true, Ordering::Relaxed);
        assert_eq!(kind(&control), Err(ErrorKind::Cancelled));
    }
}
