//! Checks every frame of an archive without decoding content.

use std::sync::Arc;

use refrain_format::{Limits, Payload, StreamChecker};
use refrain_storage::{MemorySource, Source};

use crate::damage::CutOff;
use crate::error::{Error, ErrorKind, Result};
use crate::store::frames::{ArchiveFeed, CheckedFrame, FrameReader};

/// Reads every frame of all archives of a file; verifies its checksums and order, and compares the
/// index with the frames.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` with the location; `Io`.
pub(crate) fn check_frames(source: Arc<dyn Source>, limits: &Limits) -> Result<()> {
    let mut frames = FrameReader::open(ArchiveFeed::Source(source), *limits)?;
    loop {
        match frames.take_whole()? {
            None => check_archive(&mut frames, limits)?,
            Some((archive, _)) => {
                check_frames(Arc::new(MemorySource::new(archive)), limits)?;
                // Checks what follows the archive.
                frames.next()?;
            }
        }
        if !frames.begin_next_archive() {
            return Ok(());
        }
    }
}

fn check_archive(frames: &mut FrameReader, limits: &Limits) -> Result<()> {
    let mut checker = StreamChecker::new(limits);
    while let Some(frame) = frames.next()? {
        check_frame(&mut checker, &frame, limits).map_err(|error| error.at_offset(frame.offset))?;
    }
    if checker.is_complete() {
        Ok(())
    } else {
        let at = frames.archive_start() + checker.offset();
        Err(Error::new(ErrorKind::Damaged, CutOff { at }).at_offset(at))
    }
}

fn check_frame(checker: &mut StreamChecker, frame: &CheckedFrame, limits: &Limits) -> Result<()> {
    let payload = Payload::parse(frame.header.kind, &frame.payload, limits)?;
    checker.feed(&frame.header, &payload)?;
    if let Some(tail) = &frame.tail {
        checker.tail(tail)?;
    }
    Ok(())
}
