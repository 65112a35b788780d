//! How a file ends: with recovery data, with a tail that recovery data may follow, or otherwise.

use refrain_format::envelope::{envelope_header, envelope_tail, record_count_of};
use refrain_format::limits::Limits;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, MAGIC, RecoveryPart, RecoverySet, TAIL_BYTES, Tail,
    UntrustedFrameHeader,
};
use refrain_storage::Source;

use crate::error::{Error, Result};

/// The head of a Recovery frame and its largest piece of the table.
const LAST_PAYLOAD_BYTES_MAX: usize = 4096 + 42;

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With recovery data for all bytes before it.
    Recovery(RecoverySet),
    /// With the tail of an archive.
    Tail(LastFrame),
    /// With anything else.
    Other,
}

/// The last frame of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastFrame {
    pub archive_id: u32,
    pub sequence: u32,
}

/// Reads the end of a file.
///
/// # Errors
/// `Io`; `Damaged` if there is recovery data whose last frame is not intact.
pub(crate) fn ending_of(source: &dyn Source) -> Result<Ending> {
    let size = source.size_bytes()?;
    let last_set = last_set(source, size)?;
    if let Some((set, begins_at)) = last_set
        && begins_at == if set.is_apart { 0 } else { set.parameters.protected_bytes }
    {
        return Ok(Ending::Recovery(set));
    }
    let mut magic = [0; MAGIC.len()];
    source.read_at(0, &mut magic)?;
    let Some(tail) = tail_before(source, size)?.filter(|_| magic == MAGIC) else {
        return Ok(Ending::Other);
    };
    let tail_offset = size - TAIL_BYTES as u64;
    let Some(start) = tail_offset.checked_sub(tail.back_bytes) else {
        return Ok(Ending::Other);
    };
    let Some(last) = header_at(source, start)? else {
        return Ok(encrypted_ending(source, size)?.unwrap_or(Ending::Other));
    };
    let own_end = start + last.frame_bytes() + TAIL_BYTES as u64;
    let (kind, sequence) = last_appended(source, own_end)?.unwrap_or((last.kind, last.sequence));
    if kind == FrameKind::Recovery && last_set.is_none() {
        return Err(Error::damaged(
            "the recovery data is damaged: repair the file first",
        ));
    }
    Ok(Ending::Tail(LastFrame {
        archive_id: last.archive_id,
        sequence: u32::try_from(sequence).unwrap_or(u32::MAX),
    }))
}

/// How an encrypted archive without an appendix ends, whose last frame is a copy of the first.
fn encrypted_ending(source: &dyn Source, size: u64) -> Result<Option<Ending>> {
    let mut head = [0; MAGIC.len() + FRAME_HEADER_BYTES];
    let count = source.read_at(0, &mut head)?;
    let Some(header) = head[..count].strip_prefix(&MAGIC) else {
        return Ok(None);
    };
    let Ok(header) = envelope_header(header) else {
        return Ok(None);
    };
    let records_offset = MAGIC.len() as u64 + 2 * header.frame_bytes();
    let count = record_count_of(size, records_offset);
    let tail = count.map(|count| envelope_tail(records_offset, count));
    let is_whole = tail.is_some() && tail_before(source, size)? == tail;
    Ok(is_whole.then_some(Ending::Tail(LastFrame {
        archive_id: header.archive_id,
        sequence: 1,
    })))
}

/// The kind and number of the last frame of appendices that begin at `offset`.
fn last_appended(source: &dyn Source, offset: u64) -> Result<Option<(FrameKind, u64)>> {
    let (mut offset, mut last) = (offset, None);
    loop {
        match header_at(source, offset)?.filter(|header| header.skippable) {
            Some(header) => {
                last = Some((header.kind, header.sequence));
                offset += header.frame_bytes();
            }
            None if tail_before(source, offset + TAIL_BYTES as u64)?.is_some() => {
                offset += TAIL_BYTES as u64;
            }
            None => return Ok(last),
        }
    }
}

/// The set whose last frame and tail, or last frame alone, are the end of the file, and where it
/// begins.
fn last_set(source: &dyn Source, size: u64) -> Result<Option<(RecoverySet, u64)>> {
    let tail_bytes = TAIL_BYTES as u64;
    for (is_apart, end) in [(false, size.saturating_sub(tail_bytes)), (true, size)] {
        for power in 6..=12 {
            let frame_bytes = (FRAME_HEADER_BYTES + 42 + (1 << power)) as u64;
            let Some(start) = end.checked_sub(frame_bytes) else { continue };
            let Some(set) = set_at(source, start)? else { continue };
            let begins_at = end.checked_sub(set.frames_bytes());
            if let Some(begins_at) = begins_at.filter(|_| set.is_apart == is_apart) {
                return Ok(Some((set, begins_at)));
            }
        }
    }
    Ok(None)
}

/// The set of an intact frame with a piece of the table.
fn set_at(source: &dyn Source, offset: u64) -> Result<Option<RecoverySet>> {
    let Some(header) = header_at(source, offset)? else {
        return Ok(None);
    };
    let is_piece =
        header.kind == FrameKind::Recovery && header.payload_bytes <= LAST_PAYLOAD_BYTES_MAX as u64;
    if !is_piece {
        return Ok(None);
    }
    let mut payload = vec![0; header.payload_bytes as usize];
    let count = source.read_at(offset + FRAME_HEADER_BYTES as u64, &mut payload)?;
    if count < payload.len() || header.check_payload(&payload).is_err() {
        return Ok(None);
    }
    let parsed = RecoverySet::parse(&header, &payload).ok();
    let parsed = parsed.filter(|(_, place, _)| place.part == RecoveryPart::Digests);
    Ok(parsed.map(|(set, _, _)| set))
}

fn header_at(source: &dyn Source, offset: u64) -> Result<Option<FrameHeader>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(offset, &mut header)?;
    let header = UntrustedFrameHeader::parse(&header[..count]);
    let header = header.and_then(|header| header.check(&Limits::default(), None));
    Ok(header.ok())
}

/// The tail that ends at `end`.
pub(crate) fn tail_before(source: &dyn Source, end: u64) -> Result<Option<Tail>> {
    let Some(start) = end.checked_sub(TAIL_BYTES as u64) else {
        return Ok(None);
    };
    let mut tail = [0; TAIL_BYTES];
    let count = source.read_at(start, &mut tail)?;
    Ok(Tail::parse(&tail[..count]).ok())
}
