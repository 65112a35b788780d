//! Reusable buffers for replies.

use refrain_pool::Lock;

/// How many free buffers are kept: many threads may have waited for a slow source.
const FREE_MAX: usize = 16;

/// Free buffers, so that reading megabytes does not allocate each time.
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
        let mut free = self.free.lock();
        if free.len() < FREE_MAX {
            free.push(buffer);
        }
        result
    }
}
