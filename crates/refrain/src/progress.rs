//! What a running verb tells its caller.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::archive_info::BlockInfo;

/// Callbacks from a running verb, on the thread that called it. They should return quickly.
pub trait Watch {
    /// Some more is done; called once per epoch or block, so a few dozen times a second at most.
    fn progress(&self, _progress: &Progress) {}

    /// A remark that is not an error: a codec fell back, a source changed while it was read.
    fn notice(&self, _notice: &str) {}

    /// A block was written or read.
    fn block(&self, _block: &BlockInfo) {}

    /// Set this flag to stop the verb; it then returns [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    fn cancel_flag(&self) -> Option<&AtomicBool> {
        None
    }
}

/// A watch that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// How far a verb is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Content bytes done.
    pub content_bytes_done: u64,
    /// Content bytes in all, if known.
    pub content_bytes_total: Option<u64>,
    /// Archive bytes written or read so far.
    pub archive_bytes: u64,
}

pub(crate) fn is_cancelled(watch: &dyn Watch) -> bool {
    watch
        .cancel_flag()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}
