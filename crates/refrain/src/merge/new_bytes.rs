//! The bytes of an archive's store that another one lacks, as one source.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_storage::Source;

use crate::read::native::indexed::IndexedArchive;
use crate::read::opened_archive::Layout;

/// Ranges of a store, one behind the other.
pub(crate) struct NewBytes {
    archive: Arc<IndexedArchive>,
    /// Where each begins here, and its place in the store.
    ranges: Vec<(u64, Range<u64>)>,
    size_bytes: u64,
}

impl NewBytes {
    pub(crate) fn of(archive: Arc<IndexedArchive>, ranges: &[Range<u64>]) -> NewBytes {
        let mut size_bytes = 0;
        let placed = ranges.iter().map(|range| {
            let start = size_bytes;
            size_bytes += range.end - range.start;
            (start, range.clone())
        });
        NewBytes {
            ranges: placed.collect(),
            archive,
            size_bytes,
        }
    }
}

impl Source for NewBytes {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let after = self.ranges.partition_point(|&(start, _)| start <= offset);
        let mut done = 0;
        for (start, range) in self.ranges.iter().skip(after.saturating_sub(1)) {
            let inside = (offset + done as u64).saturating_sub(*start);
            let left = (range.end - range.start).saturating_sub(inside);
            let rest = buffer.get_mut(done..).unwrap_or_default();
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            if count == 0 {
                break;
            }
            let (piece, _) = rest.split_at_mut(count);
            let read = self.archive.read_store(range.start + inside, piece);
            let read = read.map_err(io::Error::other)?;
            done += read;
            if read < count {
                break;
            }
        }
        Ok(done)
    }
}
