//! Which bytes of a file that grew have recovery data, and which have none.
//!
//! Each set protects what the one before it does not. So the sets of a file are found from its end,
//! and where one is missing, by the places at which generations and runs begin.

use std::ops::Range;

use refrain_format::envelope::run::{RunEnd, run_end_header};
use refrain_format::{
    ArchiveEnd, Catalog, FRAME_HEADER_BYTES, FrameKind, Limits, Payload, RecoverySet, TAIL_BYTES,
    UntrustedFrameHeader, find_frame,
};
use refrain_protect::envelope::SEALED_RECORD_BYTES;
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::store::appendix::{header_at, tail_before};
use crate::store::ending::set_ending_at;
use crate::store::frames::read_frame_at;

/// How many generations without recovery data are passed over in search of an earlier set. Each
/// is there because an `add` was interrupted at its very end.
const GENERATIONS_MAX: usize = 16;

/// The bytes in which a Run frame is before its records, or a Generation frame before a catalog.
const START_BYTES_MAX: u64 = 4096;

/// The recovery data of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RecoveryChain {
    /// In file order; each protects what the one before does not.
    pub sets: Vec<RecoverySet>,
    /// Bytes for which no set was found, in file order.
    pub unprotected: Vec<Range<u64>>,
}

/// Finds the recovery data of a file from where what is complete of it ends, reading some KiB for
/// each set.
///
/// # Errors
/// `Io`.
pub(crate) fn recovery_chain(source: &dyn Source, complete_end: u64) -> Result<RecoveryChain> {
    let mut chain = RecoveryChain::default();
    let mut end = complete_end;
    loop {
        let set = set_before(source, end)?;
        let set_end = set.as_ref().map_or(0, RecoverySet::appendix_end);
        if set_end < end && (set.is_some() || !chain.sets.is_empty()) {
            chain.unprotected.push(set_end..end);
        }
        let Some(set) = set else { break };
        chain.sets.push(set);
        end = set.protected().start;
        if end == 0 {
            break;
        }
    }
    chain.sets.reverse();
    chain.unprotected.reverse();
    Ok(chain)
}

/// Whether recovery data is before the last generation or run of a file.
///
/// # Errors
/// `Io`; `Damaged`.
pub(crate) fn is_between_generations(source: &dyn Source) -> Result<bool> {
    let size = source.size_bytes()?;
    let last = set_ending_at(source, size)?;
    let end = last.map_or(size, |set| set.protected().end);
    let start = start_before(source, end)?.filter(|start| (1..end).contains(start));
    let earlier = start.map(|start| set_before(source, start)).transpose()?;
    Ok(earlier.flatten().is_some())
}

/// The last set of a file whose tail ends at `end`, or where one of the generations or runs before
/// begins. `end` is where a generation, or what is appended to one, ends.
///
/// # Errors
/// `Io`.
pub(crate) fn set_before(source: &dyn Source, end: u64) -> Result<Option<RecoverySet>> {
    let mut end = end;
    for _ in 0..GENERATIONS_MAX {
        if let Some(set) = set_ending_at(source, end)? {
            return Ok(Some(set));
        }
        let begins_at = match start_before(source, end) {
            Err(error) if error.kind == ErrorKind::Io => return Err(error),
            found => found.ok().flatten(),
        };
        match begins_at.filter(|start| (1..end).contains(start)) {
            Some(start) => end = start,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Where the generation or the run begins whose last tail ends at `end`; `None` for what is no
/// continuation.
fn start_before(source: &dyn Source, end: u64) -> Result<Option<u64>> {
    let Some(tail) = tail_before(source, end)? else {
        return Ok(None);
    };
    let offset = (end - TAIL_BYTES as u64).saturating_sub(tail.back_bytes);
    match header_at(source, offset)? {
        Some(header) if header.kind == FrameKind::End => generation_start(source, offset),
        Some(_) => Ok(None),
        None => run_start(source, offset),
    }
}

/// Where the run with the RunEnd frame at an offset begins.
fn run_start(source: &dyn Source, offset: u64) -> Result<Option<u64>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(offset, &mut header)?;
    let Ok(header) = run_end_header(header.get(..count).unwrap_or_default()) else {
        return Ok(None);
    };
    let mut frame = vec![0; header.frame_bytes() as usize];
    let count = source.read_at(offset, &mut frame)?;
    let end = RunEnd::parse(frame.get(..count).unwrap_or_default(), header.archive_id)?;
    let records_bytes = end.records.saturating_mul(SEALED_RECORD_BYTES as u64);
    let Some(records_offset) = offset.checked_sub(records_bytes) else {
        return Ok(None);
    };
    let Some(start) = last_header_before(source, records_offset)? else {
        return Ok(None);
    };
    let mut header = [0; FRAME_HEADER_BYTES];
    source.read_at(start, &mut header)?;
    Ok(UntrustedFrameHeader::new(header).is_run().then_some(start))
}

/// Where the generation with the End frame at an offset begins.
fn generation_start(source: &dyn Source, offset: u64) -> Result<Option<u64>> {
    let limits = Limits::default();
    let last = read_frame_at(source, offset, FrameKind::End, None, &limits)?;
    let (last, _) = ArchiveEnd::parse(&last.payload)?;
    let Some(generation) = last.generation else {
        return Ok(None);
    };
    let (at, bytes) = generation.catalog;
    let catalog = read_frame_at(source, at, FrameKind::Catalog, Some(bytes), &limits)?;
    let Payload::Catalog(catalog) = Payload::parse(FrameKind::Catalog, &catalog.payload, &limits)?
    else {
        return Err(Error::damaged("a generation has no catalog"));
    };
    match own_row_start(&catalog) {
        Some(start) => Ok(Some(start)),
        None => record_start(source, at),
    }
}

fn own_row_start(catalog: &Catalog) -> Option<u64> {
    let own = catalog.generations.iter().find(|row| row.end.is_none());
    own.map(|row| row.start)
}

/// Where a generation begins that has nothing but the catalog at an offset.
fn record_start(source: &dyn Source, catalog: u64) -> Result<Option<u64>> {
    let Some(last) = last_header_before(source, catalog)? else {
        return Ok(None);
    };
    let header = header_at(source, last)?;
    let header = header.filter(|header| header.kind == FrameKind::Generation);
    Ok(header.map(|_| last))
}

/// Where the last frame with an intact header begins in the bytes before an offset.
fn last_header_before(source: &dyn Source, end: u64) -> Result<Option<u64>> {
    let from = end.saturating_sub(START_BYTES_MAX);
    let mut bytes = vec![0; (end - from) as usize];
    let count = source.read_at(from, &mut bytes)?;
    bytes.truncate(count);
    let (mut at, mut last) = (0, None);
    while let Some(found) = find_frame(&bytes, at) {
        last = Some(from + found as u64);
        at = found + 1;
    }
    Ok(last)
}
