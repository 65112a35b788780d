//! Finding holes and decoding ahead, for serving an archive.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::native::indexed::{IndexedArchive, RESOLVED_BYTES_MAX};
use crate::read::native::stated_map::Piece;
use crate::read::read_control::{ReadControl, Run};
use crate::read::read_statistics::count;
use crate::read::store_reader::Depth;

impl IndexedArchive {
    /// Calls `each` for the runs in a range of a member's content, until it returns `false`.
    /// Adjacent runs differ in kind, except at epoch borders.
    pub(super) fn runs_of(
        &self,
        member: usize,
        range: Range<u64>,
        each: &mut dyn FnMut(Run) -> bool,
    ) -> Result<()> {
        let row = self.outline(member)?;
        if range.end > row.content_bytes {
            let text = format!(
                "the range {} to {} ends past the end of the member, which has {} bytes",
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
            let goes_on = if !stated.has_references() {
                let pieces = stated.pieces(at..stop)?;
                for_each_run_of(pieces.map(|piece| Ok(is_zero(piece?))), each)?
            } else {
                stop = stop.min(at + RESOLVED_BYTES_MAX);
                let map = self.resolved(at..stop, &meter)?;
                let pieces = map.origins(at..stop);
                for_each_run_of(pieces.map(|piece| Ok(is_zero_origin(&map, piece))), each)?
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

/// Whether a piece of a map is zeros, and its length.
fn is_zero((piece, length_bytes): (Piece, u64)) -> (bool, u64) {
    let is_zero = matches!(piece, Piece::Fill { pattern, .. } if pattern.is_zero());
    (is_zero, length_bytes)
}

fn is_zero_origin(map: &EpochMap, (origin, length_bytes): (Origin, u64)) -> (bool, u64) {
    let is_zero = match origin {
        Origin::Fill { pattern, .. } => map.pattern(pattern).is_zero(),
        Origin::Store(_) => false,
    };
    (is_zero, length_bytes)
}

/// Calls `each` for the runs of pieces. Returns whether it wants more.
fn for_each_run_of(
    pieces: impl Iterator<Item = Result<(bool, u64)>>,
    each: &mut dyn FnMut(Run) -> bool,
) -> Result<bool> {
    let mut run: Option<Run> = None;
    for piece in pieces {
        let (is_zero, length_bytes) = piece?;
        match &mut run {
            Some(open) if open.is_zero == is_zero => open.length_bytes += length_bytes,
            _ => {
                let next = Run {
                    length_bytes,
                    is_zero,
                };
                if run.replace(next).is_some_and(|done| !each(done)) {
                    return Ok(false);
                }
            }
        }
    }
    Ok(run.is_none_or(each))
}
