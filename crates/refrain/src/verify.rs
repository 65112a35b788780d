//! The verb verify, and the forward pass that it shares with extraction.

use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart as FormatStart};
use refrain_storage::Source;

use crate::dialect::{WalkArchive, Way};
use crate::error::Result;
use crate::input::{Input, Recognized};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_limit::ContentLimit;
use crate::read::content_visitor::{ContentVisitor, EntriesPayload};
use crate::store::frames::ArchiveFeed;
use crate::targets::{ExtractSummary, Nowhere};

/// Checks every frame, every block and every content hash of an archive without writing anything.
///
/// # Errors
/// As [`extract`](crate::extract()).
pub fn verify(
    input: impl Into<Input>,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let Recognized { reader, feed, .. } = input.into().recognize(options)?;
    match reader.way {
        Way::Walk(walk) => {
            let feed = limited(feed, options)?;
            run(walk, feed, &mut Verification, options, watch)
        }
        Way::Extract(extract, format) => extract(feed, format, &mut Nowhere, options, watch),
    }
}

/// An archive and the limit of its content.
pub(crate) fn limited(
    feed: ArchiveFeed,
    options: &ReadOptions,
) -> Result<(ArchiveFeed, ContentLimit)> {
    Ok(match feed {
        ArchiveFeed::Source(source) => {
            let limit = ContentLimit::new(options, source.size_bytes()?);
            (ArchiveFeed::Source(source), limit)
        }
        ArchiveFeed::Stream(stream) => {
            let (stream, limit) = ContentLimit::for_stream(stream, options);
            (ArchiveFeed::Stream(stream), limit)
        }
    })
}

/// Reads an archive from front to back.
pub(crate) fn run(
    walk: WalkArchive,
    (feed, limit): (ArchiveFeed, ContentLimit),
    visitor: &mut dyn ContentVisitor,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    Ok(walk(feed, options, &limit, visitor, watch)?.into())
}

struct Verification;

impl ContentVisitor for Verification {
    fn start(&mut self, _start: &FormatStart) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }
    fn content(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
    fn zeros(&mut self, _length_bytes: u64) -> Result<()> {
        Ok(())
    }
    fn end(&mut self, _: &FormatStart, _: &MemberEnd, _: Vec<EntriesPayload>) -> Result<()> {
        Ok(())
    }
}
