//! A range of a file, as a file of its own.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_storage::Source;

/// A range of a source.
pub(crate) struct Window {
    source: Arc<dyn Source>,
    range: Range<u64>,
}

impl Window {
    pub(crate) fn new(source: Arc<dyn Source>, range: Range<u64>) -> Window {
        Window { source, range }
    }
}

impl Source for Window {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.range.end.saturating_sub(self.range.start))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size_bytes()?.saturating_sub(offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX);
        let count = count.min(buffer.len());
        let (wanted, _) = buffer.split_at_mut(count);
        self.source
            .read_at(self.range.start.saturating_add(offset), wanted)
    }

    fn has_changed(&self) -> io::Result<bool> {
        self.source.has_changed()
    }
}
