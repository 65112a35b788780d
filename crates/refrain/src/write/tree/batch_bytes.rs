//! The bytes collected by a read job.

use std::ops::Range;

use refrain_protect::SEGMENT_BYTES;

/// The initial capacity of a batch's buffer: most batches are a little larger than a segment.
const TYPICAL_BYTES: usize = SEGMENT_BYTES + SEGMENT_BYTES / 4;

/// The largest capacity of a reused buffer.
const SPARE_BYTES_MAX: usize = 2 * SEGMENT_BYTES;

/// The bytes of a batch, in a reused buffer: clearing it for each batch would take as long as
/// reading.
#[derive(Default)]
pub(crate) struct BatchBytes {
    buffer: Vec<u8>,
    filled: usize,
}

impl BatchBytes {
    /// An empty batch in the memory of an earlier one.
    pub(crate) fn in_memory_of(buffer: Vec<u8>) -> BatchBytes {
        BatchBytes { buffer, filled: 0 }
    }

    /// The memory for another batch, unless it is larger than most batches need: a few files of
    /// megabytes would make all buffers that large (by 200 MB with 512 MiB of memory).
    pub(crate) fn into_memory(self) -> Option<Vec<u8>> {
        (self.buffer.capacity() <= SPARE_BYTES_MAX).then_some(self.buffer)
    }

    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    pub(crate) fn get(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    pub(crate) fn get_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.buffer[range]
    }

    /// Appends `count` arbitrary bytes, to be overwritten.
    pub(crate) fn extend(&mut self, count: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += count;
        if self.buffer.len() < self.filled {
            // Doubling would double the memory of batches with a large file.
            self.buffer
                .reserve_exact(self.filled.max(TYPICAL_BYTES) - self.buffer.len());
            self.buffer.resize(self.filled, 0);
        }
        &mut self.buffer[start..self.filled]
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.filled = self.filled.min(length);
    }
}
