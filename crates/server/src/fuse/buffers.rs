//! Buffers for replies, used again.

use refrain_pool::Lock;

/// Buffers that no reply needs at the moment: as many as there are threads, so that reading
/// megabytes does not ask the system for memory each time.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Lock<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Calls `work` with a buffer of this length, whose bytes are those of earlier replies.
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
