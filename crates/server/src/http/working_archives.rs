//! Limits how many archives long answers read at once, so that the decoded blocks of each stay in
//! memory: with too many, every block is decoded again and again, and all answers are slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use refrain::Archive;
use refrain_pool::{Event, Lock};
use refrain_sync::clock::{Clock, RealClock};

/// How long an answer waits for those of other archives before it is refused: a client that asks
/// for one archive after the other is hardly delayed by the end of its last answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The archives that long answers read.
#[derive(Debug)]
pub(super) struct WorkingArchives {
    bytes_max: u64,
    state: Lock<State>,
    clock: RealClock,
}

#[derive(Debug, Default)]
struct State {
    /// By the address of the archive, which an answer keeps open.
    working: BTreeMap<usize, Work>,
    /// Happens when the last answer of an archive ends.
    ended: Arc<Event>,
}

#[derive(Debug, Default)]
struct Work {
    answers: u64,
    /// Decoded bytes that its answers use at once, as the most demanding one stated.
    bytes: u64,
}

/// An answer's use of an archive, until dropped.
#[derive(Debug)]
pub(super) struct Working<'a> {
    archives: &'a WorkingArchives,
    address: usize,
}

impl WorkingArchives {
    pub(super) fn new(bytes_max: u64) -> WorkingArchives {
        WorkingArchives {
            bytes_max,
            state: Lock::default(),
            clock: RealClock::new(),
        }
    }

    /// Waits a little if answers of other archives use the memory of decoded blocks; `None` if they
    /// still do. `bytes` of them suffice for this answer; answers of one archive use the same.
    pub(super) fn begin(&self, archive: &Arc<Archive>, bytes: u64) -> Option<Working<'_>> {
        let address = Arc::as_ptr(archive).addr();
        let deadline = self.clock.now() + WAIT_MAX;
        loop {
            let ended = match self.try_begin(address, bytes) {
                Ok(working) => return Some(working),
                Err(ended) => ended,
            };
            let left = deadline.saturating_sub(self.clock.now());
            if !ended.wait_for(left) {
                return None;
            }
        }
    }

    /// Else what to wait for.
    fn try_begin(&self, address: usize, bytes: u64) -> Result<Working<'_>, Arc<Event>> {
        let mut state = self.state.lock();
        let others = state.working.iter().filter(|(other, _)| **other != address);
        let others_bytes: u64 = others.map(|(_, work)| work.bytes).sum();
        if others_bytes > 0 && others_bytes.saturating_add(bytes) > self.bytes_max {
            return Err(Arc::clone(&state.ended));
        }
        let work = state.working.entry(address).or_default();
        work.answers += 1;
        work.bytes = work.bytes.max(bytes);
        Ok(Working {
            archives: self,
            address,
        })
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut state = self.archives.state.lock();
        let Some(work) = state.working.get_mut(&self.address) else {
            return;
        };
        work.answers -= 1;
        if work.answers == 0 {
            state.working.remove(&self.address);
            std::mem::take(&mut state.ended).happen();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_one_archive_share_and_those_of_others_wait() {
        let archives = WorkingArchives::new(10);
        let begin = |address, bytes| archives.try_begin(address, bytes);
        let (first, again) = (begin(1, 6), begin(1, 6));
        assert!(first.is_ok() && again.is_ok());
        let ended = begin(2, 5).expect_err("no room");
        let second = begin(2, 4);
        assert!(second.is_ok());
        drop((first, second));
        assert!(ended.has_happened(), "the second has ended");
        let ended = begin(2, 5).expect_err("the first goes on");
        drop(again);
        assert!(ended.has_happened());
        let large = begin(3, 100);
        assert!(large.is_ok(), "alone");
        assert!(begin(2, 1).is_err());
    }
}
