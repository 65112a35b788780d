//! A source that is read from front to back.

use std::io::{self, Read};
use std::sync::Arc;

use refrain_storage::Source;

/// A source as a stream.
pub(crate) struct SourceStream {
    source: Arc<dyn Source>,
    offset: u64,
}

impl SourceStream {
    /// Reads `source` from `offset` on.
    pub(crate) fn new(source: Arc<dyn Source>, offset: u64) -> SourceStream {
        SourceStream { source, offset }
    }
}

impl Read for SourceStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read_at(self.offset, buffer)?;
        self.offset = self.offset.saturating_add(count as u64);
        Ok(count)
    }
}
