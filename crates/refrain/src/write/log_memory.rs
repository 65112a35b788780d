//! The memory limit of the logs with which directories are read again.

use std::sync::Arc;

use refrain_pool::Lock;

/// The memory limit of all logs of a run, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct LogMemory {
    left: Arc<Lock<u64>>,
}

impl LogMemory {
    pub(crate) fn new(bytes: u64) -> LogMemory {
        LogMemory {
            left: Arc::new(Lock::new(bytes)),
        }
    }

    /// Reserves `bytes`; returns whether they were available.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let mut left = self.left.lock();
        let rest = left.checked_sub(bytes);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }
}
