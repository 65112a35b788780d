//! Limits the memory of the answers being sent: a client that does not read holds a piece of one.

use std::sync::atomic::{AtomicU64, Ordering};

/// The memory for answers.
#[derive(Debug)]
pub(super) struct AnswerMemory {
    bytes_max: u64,
    bytes: AtomicU64,
}

/// A part of it, until dropped.
#[derive(Debug)]
pub(super) struct AnswerBytes<'a> {
    memory: &'a AnswerMemory,
    bytes: u64,
}

impl AnswerMemory {
    pub(super) fn new(bytes_max: u64) -> AnswerMemory {
        AnswerMemory {
            bytes_max,
            bytes: AtomicU64::new(0),
        }
    }

    /// `None` if other answers use it. More than all of it is granted if nothing else is in use.
    pub(super) fn try_take(&self, bytes: u64) -> Option<AnswerBytes<'_>> {
        let with_more = |used: u64| {
            let sum = used.saturating_add(bytes);
            (used == 0 || bytes == 0 || sum <= self.bytes_max).then_some(sum)
        };
        let taken = (self.bytes).fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_more);
        taken.ok().map(|_| AnswerBytes {
            memory: self,
            bytes,
        })
    }
}

impl Drop for AnswerBytes<'_> {
    fn drop(&mut self) {
        self.memory.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_returns_when_it_is_dropped() {
        let memory = AnswerMemory::new(10);
        let first = memory.try_take(6);
        assert!(first.is_some() && memory.try_take(5).is_none());
        let second = memory.try_take(4);
        assert!(second.is_some() && memory.try_take(1).is_none());
        drop((first, second));
        let large = memory.try_take(100);
        assert!(large.is_some() && memory.try_take(1).is_none(), "alone");
    }
}
