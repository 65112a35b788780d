//! How a file ends: with recovery data, with a tail that recovery data may follow, or otherwise.

use refrain_format::{
    FRAME_HEADER_BYTES, FrameKind, MAGIC, RECOVERY_HEAD_BYTES, RecoveryPart, RecoveryPlace,
    RecoverySet, TAIL_BYTES,
};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::store::appendix::{LastFrame, appended_frames, header_at, own_end};

/// The largest payload of a Recovery frame with a piece of the table.
const LAST_PAYLOAD_BYTES_MAX: usize = 4096 + RECOVERY_HEAD_BYTES[1];

/// The largest payload of any Recovery frame: the head and the largest slice.
pub(crate) const RECOVERY_PAYLOAD_BYTES_MAX: u64 = (1 << 26) + 1024;

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With recovery data for the bytes before it: all, or those that earlier one does not protect.
    Recovery(RecoverySet),
    /// With the tail of an archive.
    Tail(LastFrame),
    /// With anything else.
    Other,
}

/// Reads the end of a file.
///
/// # Errors
/// `Io`; `Damaged` if there is recovery data whose last frame is not intact.
pub(crate) fn ending_of(source: &dyn Source) -> Result<Ending> {
    let size = source.size_bytes()?;
    let last_set = last_set(source, size)?;
    if let Some((set, _)) = last_set.filter(is_in_place) {
        return Ok(Ending::Recovery(set));
    }
    let mut magic = [0; MAGIC.len()];
    source.read_at(0, &mut magic)?;
    let own = own_end(source, size)?.filter(|_| magic == MAGIC);
    let Some(own) = own else {
        return Ok(Ending::Other);
    };
    let appended = appended_frames(source, &own, size)?;
    let (kind, sequence) = match appended.last {
        Some((kind, sequence)) => (Some(kind), sequence),
        None => (None, own.last.sequence),
    };
    if kind == Some(FrameKind::Recovery) && last_set.is_none() {
        return Err(Error::damaged(
            "the recovery data is damaged: repair the file first",
        ));
    }
    Ok(Ending::Tail(LastFrame {
        sequence,
        ..own.last
    }))
}

/// Whether a set, and where its frames begin, are as they were written: an archive inside of a file
/// may end like one.
fn is_in_place((set, begins_at): &(RecoverySet, u64)) -> bool {
    *begins_at == if set.is_apart { 0 } else { set.protected().end }
}

/// The set whose last frame and tail, or last frame alone, end at `end`, and where it begins.
fn last_set(source: &dyn Source, end: u64) -> Result<Option<(RecoverySet, u64)>> {
    let tail_bytes = TAIL_BYTES as u64;
    for (is_apart, end) in [(false, end.saturating_sub(tail_bytes)), (true, end)] {
        for head_bytes in RECOVERY_HEAD_BYTES {
            for power in 6..=12 {
                let frame_bytes = (FRAME_HEADER_BYTES + head_bytes + (1 << power)) as u64;
                let Some(start) = end.checked_sub(frame_bytes) else { continue };
                let Some(set) = set_at(source, start)? else { continue };
                let begins_at = end.checked_sub(set.frames_bytes());
                if let Some(begins_at) = begins_at.filter(|_| set.is_apart == is_apart) {
                    return Ok(Some((set, begins_at)));
                }
            }
        }
    }
    Ok(None)
}

/// The set whose tail ends at `end`, if its last frame is intact and it is where it was written.
///
/// # Errors
/// `Io`.
pub(crate) fn set_ending_at(source: &dyn Source, end: u64) -> Result<Option<RecoverySet>> {
    let found = last_set(source, end)?.filter(is_in_place);
    Ok(found.map(|(set, _)| set).filter(|set| !set.is_apart))
}

/// The set of an intact frame with a piece of the table.
fn set_at(source: &dyn Source, offset: u64) -> Result<Option<RecoverySet>> {
    let found = recovery_frame_at(source, offset, LAST_PAYLOAD_BYTES_MAX as u64)?;
    let found = found.filter(|(_, place)| place.part == RecoveryPart::Digests);
    Ok(found.map(|(set, _)| set))
}

/// The set of an intact Recovery frame of at most such a payload, and the place of the frame in it.
///
/// # Errors
/// `Io`.
pub(crate) fn recovery_frame_at(
    source: &dyn Source,
    offset: u64,
    payload_bytes_max: u64,
) -> Result<Option<(RecoverySet, RecoveryPlace)>> {
    let Some(header) = header_at(source, offset)? else {
        return Ok(None);
    };
    if header.kind != FrameKind::Recovery || header.payload_bytes > payload_bytes_max {
        return Ok(None);
    }
    let mut payload = vec![0; header.payload_bytes as usize];
    let count = source.read_at(offset + FRAME_HEADER_BYTES as u64, &mut payload)?;
    if count < payload.len() || header.check_payload(&payload).is_err() {
        return Ok(None);
    }
    let parsed = RecoverySet::parse(&header, &payload).ok();
    Ok(parsed.map(|(set, place, _)| (set, place)))
}

/// Where recovery data begins, or the file ends.
///
/// # Errors
/// `Io`.
pub(crate) fn protected_end(source: &dyn Source) -> Result<u64> {
    let size = source.size_bytes()?;
    let set = set_ending_at(source, size)?;
    Ok(set.map_or(size, |set| set.protected().end))
}
