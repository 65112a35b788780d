//! Walks an archive in memory.

use crate::constants::{MAGIC, TAIL_BYTES};
use crate::error::{FormatError, Result};
use crate::frame::{FrameHeader, check_magic};
use crate::limits::Limits;
use crate::order::StreamChecker;
use crate::payload::{Payload, read_frame};

/// Walks an archive from front to back and checks everything that can be checked without decoding:
/// every frame, their order, the index and the end. Calls `visit` with the offset, header and
/// payload of each frame.
///
/// # Errors
/// The first error found, or the error of `visit`.
pub fn walk_archive<'a>(
    archive: &'a [u8],
    limits: &Limits,
    mut visit: impl FnMut(u64, &FrameHeader, &Payload<'a>) -> Result<()>,
) -> Result<StreamChecker> {
    check_magic(archive)?;
    let mut checker = StreamChecker::new(limits);
    let mut offset = MAGIC.len();
    while offset < archive.len() {
        let rest = archive.get(offset..).unwrap_or_default();
        checker.check_what_follows(rest)?;
        if checker.is_ended() && !checker.is_complete() {
            checker.tail(rest.get(..TAIL_BYTES).unwrap_or(rest))?;
            offset += TAIL_BYTES;
            continue;
        }
        let (header, payload) = read_frame(archive, offset, limits)?;
        checker.feed(&header, &payload)?;
        visit(offset as u64, &header, &payload)?;
        offset = usize::try_from(checker.offset()).unwrap_or(usize::MAX);
    }
    if checker.is_complete() {
        Ok(checker)
    } else {
        Err(FormatError::Truncated {
            what: "archive without an End frame and a tail",
            needed_bytes: (offset as u64).saturating_add(1),
            available_bytes: archive.len() as u64,
        })
    }
}
