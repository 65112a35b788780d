//! Checks every frame of an archive without decoding content.

use std::sync::Arc;

use refrain_format::{Limits, Payload, StreamChecker};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::store::frames::{ArchiveFeed, CheckedFrame, FrameReader};

/// Reads every frame; compares its checksums, its order, and the index with all of them.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` with the location; `Io`.
pub(crate) fn check_frames(source: Arc<dyn Source>, limits: &Limits) -> Result<()> {
    let mut frames = FrameReader::open(ArchiveFeed::Source(source), *limits)?;
    let mut checker = StreamChecker::new(limits);
    while let Some(frame) = frames.next()? {
        check_frame(&mut checker, &frame, limits).map_err(|error| error.at_offset(frame.offset))?;
    }
    match checker.is_complete() {
        true => Ok(()),
        false => {
            let message = "the archive is truncated: its End frame is missing";
            Err(Error::damaged(message).at_offset(checker.offset()))
        }
    }
}

fn check_frame(checker: &mut StreamChecker, frame: &CheckedFrame, limits: &Limits) -> Result<()> {
    checker.check_nothing_follows(&frame_bytes(frame))?;
    let payload = Payload::parse(frame.header.kind, &frame.payload, limits)?;
    checker.feed(&frame.header, &payload)?;
    Ok(())
}

/// The header of a frame, which is all that the checker needs of what may follow the end.
pub(crate) fn frame_bytes(frame: &CheckedFrame) -> Vec<u8> {
    refrain_format::complete_frame(
        frame.header.kind,
        frame.header.skippable,
        &[],
        frame.header.sequence,
    )
}
