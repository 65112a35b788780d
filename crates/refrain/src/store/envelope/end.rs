//! Where an encrypted archive ends: behind its records, or behind the newest run.

use std::ops::Range;

use refrain_format::envelope::StoredEnvelope;
use refrain_format::envelope::run::{
    RUN_END_BYTES_MAX, RunEnd, RunStart, SHARED_RUN_FRAME_BYTES, run_end_header,
};
use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, SYNC, TAIL_BYTES, find_frame};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::store::appendix::{header_at, records_end_before, tail_before};
use crate::store::ending::{
    RECOVERY_PAYLOAD_BYTES_MAX, protected_end, recovery_frame_at, set_ending_at,
};

/// How many bytes a search for the beginning of an incomplete run reads at once.
const SEARCH_BYTES: usize = 1 << 20;

/// An end of a complete archive or run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundEnd {
    /// Behind its own tail.
    pub end: u64,
    /// Behind its appendices: what is appended next goes there.
    pub append_at: u64,
    /// Where the RunEnd frame begins, and its contents; `None` if the archive has no runs.
    pub run_end: Option<(u64, RunEnd)>,
}

/// How the file of an encrypted archive ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EnvelopeEnd {
    /// With this, and its appendices.
    Complete(FoundEnd),
    /// With this, and an incomplete run: one is being written, or a writer was killed.
    Incomplete(FoundEnd),
    /// With a complete run whose end is damaged.
    DamagedRun {
        /// What is before the run.
        before: FoundEnd,
        /// Where it begins.
        offset: u64,
        start: RunStart,
    },
    /// The archive is truncated.
    Nowhere,
}

/// Finds the end of the last complete run, or of the archive. `place` is where the first record
/// begins, and the id of the archive.
///
/// # Errors
/// `Io`; `Damaged` for recovery data.
pub(super) fn envelope_end(file: &dyn Source, place: (u64, u32)) -> Result<EnvelopeEnd> {
    let size = file.size_bytes()?;
    if let Some(found) = end_at(file, place, size)? {
        return Ok(EnvelopeEnd::Complete(found));
    }
    let end = protected_end(file)?;
    for cut in 1..=SHARED_RUN_FRAME_BYTES as u64 {
        let Some(at) = end.checked_sub(cut) else { break };
        if begins_like_a_frame(file, at, cut)?
            && let Some(found) = end_at(file, place, at)?
        {
            return Ok(EnvelopeEnd::Incomplete(found));
        }
    }
    if let Some(found) = end_before_recovery(file, place, end)? {
        return Ok(EnvelopeEnd::Incomplete(found));
    }
    let Some((offset, start)) = last_run(file, place.0..end, place.1)? else {
        return Ok(EnvelopeEnd::Nowhere);
    };
    let Some(before) = end_at(file, place, offset)? else {
        return Ok(EnvelopeEnd::Nowhere);
    };
    if !seems_complete(file, offset, end)? {
        return Ok(EnvelopeEnd::Incomplete(before));
    }
    Ok(EnvelopeEnd::DamagedRun {
        before,
        offset,
        start,
    })
}

/// Where what is complete of an encrypted archive ends in its file, with all that is appended to
/// it; `None` if that is damaged.
///
/// # Errors
/// `Io`.
pub(crate) fn complete_envelope_end(
    file: &dyn Source,
    stored: &StoredEnvelope,
) -> Result<Option<u64>> {
    let place = (stored.records_offset(), stored.envelope.archive_id());
    Ok(match envelope_end(file, place)? {
        EnvelopeEnd::Complete(end) | EnvelopeEnd::Incomplete(end) => Some(end.append_at),
        EnvelopeEnd::DamagedRun { .. } | EnvelopeEnd::Nowhere => None,
    })
}

/// Whether the bytes from `at` on may be the first ones of a Run frame.
fn begins_like_a_frame(file: &dyn Source, at: u64, count: u64) -> Result<bool> {
    let mut bytes = SYNC;
    let count = SYNC.len().min(usize::try_from(count).unwrap_or(SYNC.len()));
    let (begin, _) = bytes.split_at_mut(count);
    let read = file.read_at(at, begin)?;
    Ok(read == count && bytes == SYNC)
}

/// The end of which the last tail, its own or that of an appendix, ends at `end`.
fn end_at(
    file: &dyn Source,
    (records_offset, archive_id): (u64, u32),
    end: u64,
) -> Result<Option<FoundEnd>> {
    let Some(tail) = tail_before(file, end)? else {
        return Ok(None);
    };
    let Some(start) = (end - TAIL_BYTES as u64).checked_sub(tail.back_bytes) else {
        return Ok(None);
    };
    if start == MAGIC.len() as u64 {
        let set = set_ending_at(file, end)?;
        let before = set.map_or(end, |set| set.protected().end);
        let records_end = records_end_before(file, records_offset, before)?;
        return Ok(records_end.map(|records_end| FoundEnd {
            end: records_end + TAIL_BYTES as u64,
            append_at: end,
            run_end: None,
        }));
    }
    match run_end_at(file, start, archive_id) {
        Ok(run_end) => Ok(Some(FoundEnd {
            end: start + run_end.frame_bytes + TAIL_BYTES as u64,
            append_at: end,
            run_end: Some((start, run_end)),
        })),
        Err(error) if error.kind == ErrorKind::Damaged => Ok(None),
        Err(error) => Err(error),
    }
}

/// The size of the RunEnd frame there, if its header is intact.
fn run_end_size(file: &dyn Source, offset: u64) -> Result<Option<u64>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = file.read_at(offset, &mut header)?;
    let header = run_end_header(header.get(..count).unwrap_or_default());
    Ok(header.ok().map(|header| header.frame_bytes()))
}

/// The RunEnd frame there.
///
/// # Errors
/// `Damaged` if there is none; `Io`.
pub(super) fn run_end_at(file: &dyn Source, offset: u64, archive_id: u32) -> Result<RunEnd> {
    let frame_bytes = run_end_size(file, offset)?;
    let frame_bytes =
        frame_bytes.ok_or_else(|| Error::damaged("the end of an appended run is damaged"))?;
    let mut frame = vec![0; frame_bytes as usize];
    let count = file.read_at(offset, &mut frame)?;
    Ok(RunEnd::parse(
        frame.get(..count).unwrap_or_default(),
        archive_id,
    )?)
}

/// The Run frame of this size there, if it is intact.
pub(super) fn run_start_at(
    file: &dyn Source,
    offset: u64,
    frame_bytes: u64,
    archive_id: u32,
) -> Result<Option<RunStart>> {
    let mut frame = vec![0; frame_bytes as usize];
    let count = file.read_at(offset, &mut frame)?;
    frame.truncate(count);
    Ok(RunStart::parse(&frame, archive_id).ok())
}

/// The last Run frame of an archive in these bytes of the file, which are searched from their end.
fn last_run(
    file: &dyn Source,
    bytes: Range<u64>,
    archive_id: u32,
) -> Result<Option<(u64, RunStart)>> {
    let mut to = bytes.end;
    while to > bytes.start {
        let from = to.saturating_sub(SEARCH_BYTES as u64).max(bytes.start);
        // A frame may begin in this piece and end in the one behind.
        let mut piece = vec![0; (to - from) as usize + SHARED_RUN_FRAME_BYTES];
        let count = file.read_at(from, &mut piece)?;
        piece.truncate(count);
        let mut last = None;
        let mut at = 0;
        while let Some(found) = find_frame(&piece, at) {
            let frame = piece.get(found..).unwrap_or_default();
            if let Ok(start) = RunStart::parse(frame, archive_id) {
                last = Some((from + found as u64, start));
            }
            at = found + 1;
        }
        if last.is_some() {
            return Ok(last);
        }
        to = from;
    }
    Ok(None)
}

/// The end of the last run, if recovery data follows it that was not written completely.
fn end_before_recovery(file: &dyn Source, place: (u64, u32), end: u64) -> Result<Option<FoundEnd>> {
    let mut to = end;
    while to > place.0 {
        let from = to.saturating_sub(SEARCH_BYTES as u64).max(place.0);
        let frames = frames_between(file, from..to)?;
        for offset in frames.iter().rev() {
            let Some(header) = header_at(file, *offset)? else {
                // A frame of a run.
                return Ok(None);
            };
            if header.kind != FrameKind::Recovery || header.archive_id != place.1 {
                continue;
            }
            let first = match recovery_frame_at(file, *offset, RECOVERY_PAYLOAD_BYTES_MAX)? {
                Some((set, _)) => set.protected().end,
                None => *offset,
            };
            // What was not added to was written whole or not at all: then it was cut off since.
            let found = end_at(file, place, first)?;
            if let Some(found) = found.filter(|found| found.run_end.is_some()) {
                return Ok(Some(found));
            }
        }
        to = from;
    }
    Ok(None)
}

/// Where frames with intact headers begin in a range of the file.
fn frames_between(file: &dyn Source, range: Range<u64>) -> Result<Vec<u64>> {
    // A header may begin in the range and end behind it.
    let mut piece = vec![0; (range.end - range.start) as usize + FRAME_HEADER_BYTES - 1];
    let count = file.read_at(range.start, &mut piece)?;
    piece.truncate(count);
    let (mut at, mut offsets) = (0, Vec::new());
    while let Some(found) = find_frame(&piece, at) {
        offsets.push(range.start + found as u64);
        at = found + 1;
    }
    Ok(offsets)
}

/// Whether something between the beginning of a run and the end of the file shows that the run was
/// complete: a tail that fits, or a RunEnd frame with as many bytes as a tail has behind it.
fn seems_complete(file: &dyn Source, start: u64, end: u64) -> Result<bool> {
    if let Some(tail) = tail_before(file, end)?
        && tail.back_bytes <= RUN_END_BYTES_MAX
    {
        return Ok(true);
    }
    let from = end
        .saturating_sub(RUN_END_BYTES_MAX + TAIL_BYTES as u64)
        .max(start);
    let mut piece = vec![0; (end - from) as usize];
    let count = file.read_at(from, &mut piece)?;
    piece.truncate(count);
    let mut at = 0;
    while let Some(found) = find_frame(&piece, at) {
        let frame = piece.get(found..).unwrap_or_default();
        if let Ok(header) = run_end_header(frame) {
            let frame_end = from + found as u64 + header.frame_bytes();
            return Ok(frame_end + TAIL_BYTES as u64 <= end);
        }
        at = found + 1;
    }
    Ok(false)
}
