//! Reads what remains of damaged content, byte by byte: no range is lost because another one in the
//! same read is.

use std::ops::Range;

use crate::damage::push_range;
use crate::error::{Error, ErrorKind, Result};
use crate::read::native::indexed::{IndexedArchive, RESOLVED_BYTES_MAX};
use crate::read::work_meter::WorkMeter;

impl IndexedArchive {
    /// Fills `buffer` with the readable content of a range, and with zeros elsewhere. Returns the
    /// missing content ranges, ascending.
    pub(super) fn content_remains(
        &self,
        range: Range<u64>,
        buffer: &mut [u8],
        meter: &WorkMeter,
    ) -> Result<Vec<Range<u64>>> {
        let mut missing = vec![];
        let mut at = range.start;
        while at < range.end {
            let mapped = self.map_of(at, meter);
            let stop = match &mapped {
                Ok(map) => (map.content().end).min(at.saturating_add(RESOLVED_BYTES_MAX)),
                Err(_) => self.index.epoch_end(at)?.unwrap_or(u64::MAX),
            };
            let stop = stop.clamp(at + 1, range.end);
            let piece = &mut buffer[(at - range.start) as usize..(stop - range.start) as usize];
            match mapped {
                Ok(_) => self.mapped_remains(at..stop, piece, meter, &mut missing)?,
                Err(error) => lose(error, at..stop, piece, &mut missing)?,
            }
            at = stop;
        }
        Ok(missing)
    }

    /// As above for a range of one epoch, whose own map is intact. What it refers to may be lost.
    fn mapped_remains(
        &self,
        range: Range<u64>,
        buffer: &mut [u8],
        meter: &WorkMeter,
        missing: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        match self.resolved(range.clone(), meter) {
            Ok(map) => {
                let start = range.start;
                let mut lost = |range| push_range(missing, range);
                self.store
                    .fill_remains(&map, start, buffer, meter, &mut lost)
            }
            Err(error) if range.end - range.start <= 1 => lose(error, range, buffer, missing),
            Err(error) if error.kind == ErrorKind::Damaged => {
                let half = (range.end - range.start) / 2;
                let middle = range.start + half;
                let (first, second) = buffer.split_at_mut(half as usize);
                self.mapped_remains(range.start..middle, first, meter, missing)?;
                self.mapped_remains(middle..range.end, second, meter, missing)
            }
            Err(error) => Err(error),
        }
    }
}

/// Records that a range is missing, if the error says so.
fn lose(
    error: Error,
    range: Range<u64>,
    buffer: &mut [u8],
    missing: &mut Vec<Range<u64>>,
) -> Result<()> {
    match error.kind {
        ErrorKind::Damaged => {
            buffer.fill(0);
            push_range(missing, range);
            Ok(())
        }
        _ => Err(error),
    }
}
