//! Checks every frame of an archive without decoding content.

use std::sync::Arc;

use refrain_format::{Limits, Payload, StreamChecker};
use refrain_storage::MemorySource;

use crate::damage::CutOff;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, Unwatched, Watch, is_cancelled};
use crate::read::native::concatenation_walk::is_given_back;
use crate::read::native::given_back::GivenBackFrames;
use crate::read::native::index_reading::find_archives;
use crate::store::frames::{ArchiveFeed, CheckedFrame, FrameReader};

/// The frames of a file, after a check of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameTotals {
    /// The frames of all archives in the file, those within a Whole frame among them.
    pub frames: u64,
    /// Their bytes, without the envelope of an encrypted archive.
    pub archive_bytes: u64,
}

/// Reads every frame of all archives of a file; verifies its checksums and order, and compares the
/// index with the frames.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` with the location; `Io`, `Cancelled`.
pub(crate) fn check_frames(
    feed: ArchiveFeed,
    limits: &Limits,
    watch: &dyn Watch,
) -> Result<FrameTotals> {
    let source = feed.source();
    let found = match source.as_deref().map(find_archives) {
        Some(Err(error)) if error.kind == ErrorKind::Io => return Err(error),
        // Reading all frames finds the damage, with its place.
        Some(Err(_)) | None => Vec::new(),
        Some(Ok(found)) => found,
    };
    let mut frames = FrameReader::open(feed, *limits)?;
    let mut totals = FrameTotals::default();
    loop {
        totals.frames += match frames.take_whole()? {
            None => {
                let start = frames.archive_start();
                let archive = found.iter().find(|found| found.bytes.start == start);
                if let Some((source, archive)) = source.as_ref().zip(archive) {
                    let given_back = GivenBackFrames::read(&**source, archive, limits)?;
                    frames.expect_given_back(given_back.map(is_given_back));
                }
                check_archive(&mut frames, limits, watch)?
            }
            Some((archive, _)) => {
                let feed = ArchiveFeed::Source(Arc::new(MemorySource::new(archive)));
                let inside = check_frames(feed, limits, &Unwatched)?;
                // Checks what follows the archive.
                frames.next()?;
                inside.frames
            }
        };
        if !frames.begin_next_archive() {
            totals.archive_bytes = frames.offset();
            return Ok(totals);
        }
    }
}

/// Returns the number of frames.
fn check_archive(frames: &mut FrameReader, limits: &Limits, watch: &dyn Watch) -> Result<u64> {
    let mut checker = StreamChecker::new(limits);
    let mut count = 0;
    while let Some(frame) = frames.next()? {
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
        checker.skip_appendix(frame.offset - frames.archive_start());
        check_frame(&mut checker, &frame, limits).map_err(|error| error.at_offset(frame.offset))?;
        count += 1;
        watch.progress(&Progress {
            content_bytes_done: 0,
            content_bytes_total: None,
            archive_bytes: frames.offset(),
        });
    }
    if checker.is_complete() {
        Ok(count)
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
