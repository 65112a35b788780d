//! How a read is carried out, and what a range consists of, for those who serve an archive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a read is carried out.
#[derive(Debug, Clone, Default)]
pub struct ReadControl {
    /// Whether only what is in memory is delivered: nothing is read from the source and nothing is
    /// decoded, so that the caller does not wait.
    pub memory_only: bool,
    /// When it becomes `true`, the read ends before the next block.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl ReadControl {
    /// Only what is in memory.
    pub const MEMORY_ONLY: ReadControl = ReadControl {
        memory_only: true,
        cancelled: None,
    };

    /// Whether the read is to end.
    pub fn is_cancelled(&self) -> bool {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        self.cancelled.as_ref().is_some_and(is_set)
    }
}

/// A part of a range of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Its length in bytes; not 0.
    pub length_bytes: u64,
    /// Whether all of it is known to be zeros: it is a fill that no block holds.
    pub is_zero: bool,
}
