//! Reads what remains of a damaged range of the store.

use std::ops::Range;

use refrain_protect::CHECKSUM_CHUNK_BYTES;

use crate::error::{ErrorKind, Result};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::store_reader::{Depth, StoreReader};
use crate::read::work_meter::WorkMeter;

impl StoreReader {
    /// As [`StoreReader::fill`] where the store is readable, with zeros elsewhere. Passes the
    /// missing content ranges to `lost`, ascending.
    pub(crate) fn fill_remains(
        &self,
        map: &EpochMap,
        content_start: u64,
        out: &mut [u8],
        meter: &WorkMeter,
        lost: &mut dyn FnMut(Range<u64>),
    ) -> Result<()> {
        let mut at = 0;
        for (origin, length) in map.origins(content_start..content_start + out.len() as u64) {
            let part = &mut out[at..at + length as usize];
            match origin {
                Origin::Fill { pattern, phase } => map.pattern(pattern).fill(phase, part),
                Origin::Store(offset) => {
                    let from = content_start + at as u64;
                    self.read_remains(offset, part, meter, &mut |range| {
                        lost(from + range.start..from + range.end);
                    })?;
                }
            }
            at += length as usize;
        }
        Ok(())
    }

    /// Fills `out` with the readable store bytes. Passes the missing ranges of `out` to `lost`.
    fn read_remains(
        &self,
        offset_in_store: u64,
        out: &mut [u8],
        meter: &WorkMeter,
        lost: &mut dyn FnMut(Range<u64>),
    ) -> Result<()> {
        let end = offset_in_store + out.len() as u64;
        let mut at = offset_in_store;
        while at < end {
            let stop = self.next_seam(at)?.clamp(at + 1, end);
            let range = at - offset_in_store..stop - offset_in_store;
            let part = &mut out[range.start as usize..range.end as usize];
            match self.read(at, part, Depth::Whole, Some(meter)) {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    part.fill(0);
                    lost(range);
                }
                read => read?,
            }
            at = stop;
        }
        Ok(())
    }

    /// Where the piece of the block with this store byte, or the gap between blocks, ends: it is
    /// lost or readable as a whole.
    fn next_seam(&self, offset_in_store: u64) -> Result<u64> {
        let Some(location) = self.find(offset_in_store)? else {
            return Ok(self.next_block_start(offset_in_store));
        };
        let inside = offset_in_store - location.store_start;
        let piece_bytes = CHECKSUM_CHUNK_BYTES as u64;
        let piece_end = (inside / piece_bytes + 1) * piece_bytes;
        Ok(location.store_start + piece_end.min(location.raw_bytes))
    }
}
