//! Reusable buffers for replies.

use refrain_pool::Lock;

/// Free buffers, at most one per thread, so that reading megabytes does not allocate each time.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Lock<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Calls `work` with a buffer of this length, which holds bytes of earlier replies.
    pub(super) fn with<R>(&self, length_bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buffer = self.free.lock().pop().unwrap_or_default();
        if buffer.len() < length_bytes {
            buffer.resize(length_bytes, 0);
        }
        let result = work(buffer.get_mut(..length_bytes).unwrap_or_default());
        self.free.lock().push(buffer);
        result
    }
}
