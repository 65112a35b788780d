//! The index at the end of an archive.

use refrain_format::{ArchiveEnd, END_FRAME_BYTES, FrameKind, Index, Limits};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::read::native::frame_index::FrameIndex;
use crate::store::frames::read_frame_at;

/// Reads the End frame and the index at the offset that it states, and checks that they match.
pub(crate) fn read_index(source: &dyn Source, limits: &Limits) -> Result<(ArchiveEnd, FrameIndex)> {
    let end = read_end(source, source.size_bytes()?)?;
    let offset = end.index_frame_offset;
    let frame = read_frame_at(
        source,
        offset,
        FrameKind::Index,
        Some(end.index_frame_bytes),
        limits,
    )?;
    let index = Index::parse(&frame.payload, limits)
        .map_err(|error| Error::from(error).at_offset(offset))?;
    index
        .check(&end)
        .map_err(|error| Error::from(error).at_offset(offset))?;
    Ok((end, FrameIndex::of_rows(index, Vec::new())))
}

fn read_end(source: &dyn Source, size_bytes: u64) -> Result<ArchiveEnd> {
    let offset = size_bytes.saturating_sub(END_FRAME_BYTES as u64);
    let mut last = [0; END_FRAME_BYTES];
    let count = source.read_at(offset, &mut last)?;
    ArchiveEnd::from_end_of_file(&last[..count], size_bytes).map_err(|error| {
        let error = Error::from(error);
        match error.kind {
            ErrorKind::Damaged => Error::new(ErrorKind::Damaged, no_end(&error)),
            _ => error,
        }
        .at_offset(offset)
    })
}

/// The message for the most common damage.
fn no_end(error: &Error) -> String {
    format!("the archive is truncated, or other data follows it ({error})")
}
