//! How a file ends: with recovery data, with a tail that recovery data may follow, or otherwise.

use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, RecoveryPart, RecoverySet, TAIL_BYTES};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::store::appendix::{LastFrame, appended_frames, header_at, own_end};

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

/// Where recovery data begins, or the file ends.
///
/// # Errors
/// `Io`.
pub(crate) fn protected_end(source: &dyn Source) -> Result<u64> {
    let size = source.size_bytes()?;
    let set = last_set(source, size)?
        .filter(|(set, begins_at)| !set.is_apart && *begins_at == set.parameters.protected_bytes);
    Ok(set.map_or(size, |(_, begins_at)| begins_at))
}
