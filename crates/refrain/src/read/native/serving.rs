//! Holes and decoding ahead, for those who serve an archive.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::native::indexed::{IndexedArchive, RESOLVED_BYTES_MAX};
use crate::read::read_control::{ReadControl, Run};
use crate::read::read_statistics::count;
use crate::read::store_reader::Depth;

impl IndexedArchive {
    /// Calls `each` for the runs of a range of a member's content, until it returns `false`.
    /// Neighbours are of different sorts, except where epochs meet.
    pub(super) fn runs_of(
        &self,
        member: usize,
        range: Range<u64>,
        each: &mut dyn FnMut(Run) -> bool,
    ) -> Result<()> {
        let row = self.outline(member)?;
        if range.end > row.content_bytes {
            let text = format!(
                "the range {} to {} ends beyond the end: the member has {} bytes",
                range.start, range.end, row.content_bytes
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if row.kind.has_entries() {
            let length_bytes = range.end - range.start;
            each(Run {
                length_bytes,
                is_zero: false,
            });
            return Ok(());
        }
        let meter = self.meter();
        let mut at = row.content_start + range.start;
        let end = row.content_start + range.end;
        while at < end {
            let stated = self.map_of(at, &meter)?;
            let mut stop = stated.content().end.min(end);
            let goes_on = match stated.without_repeats() {
                Some(map) => runs_of_map(map, at..stop, each),
                None => {
                    stop = stop.min(at + RESOLVED_BYTES_MAX);
                    runs_of_map(&self.resolved(at..stop, &meter)?, at..stop, each)
                }
            };
            if !goes_on {
                break;
            }
            at = stop;
        }
        Ok(())
    }

    /// Decodes the blocks of a range of a member's content.
    pub(super) fn decode_ahead(
        &self,
        member: usize,
        range: Range<u64>,
        control: &ReadControl,
    ) -> Result<u64> {
        let row = self.outline(member)?;
        let meter = self.meter().with_control(control);
        let mut at = row.content_start + range.start.min(row.content_bytes);
        let end = row.content_start + range.end.min(row.content_bytes);
        let mut decoded_bytes = 0;
        while at < end {
            let stop = end.min(at + RESOLVED_BYTES_MAX);
            let (blocks, found_to) = self.blocks_to_prefetch(at, stop, &meter)?;
            for location in &blocks {
                let raw_bytes = location.raw_bytes;
                self.store
                    .open(location, raw_bytes, Depth::Whole, Some(&meter))?;
                count(&self.store.counters.prefetches, 1);
                decoded_bytes += raw_bytes;
            }
            at = found_to;
        }
        Ok(decoded_bytes)
    }
}

/// Calls `each` for the runs of a range of a map. Returns whether it wants more.
fn runs_of_map(map: &EpochMap, range: Range<u64>, each: &mut dyn FnMut(Run) -> bool) -> bool {
    let mut run: Option<Run> = None;
    for (origin, length_bytes) in map.origins(range) {
        let is_zero = match origin {
            Origin::Fill { pattern, .. } => map.pattern(pattern).is_zero(),
            Origin::Store(_) => false,
        };
        match &mut run {
            Some(open) if open.is_zero == is_zero => open.length_bytes += length_bytes,
            _ => {
                let next = Run {
                    length_bytes,
                    is_zero,
                };
                if run.replace(next).is_some_and(|done| !each(done)) {
                    return false;
                }
            }
        }
    }
    run.is_none_or(each)
}
