//! Reads the archives of a file or a pipe sequentially.

use std::sync::Arc;

use refrain_format::{ARCHIVES_MAX, MemberEnd, MemberStart};
use refrain_pool::crew;
use refrain_storage::{MemorySource, Source};

use crate::error::{ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_limit::ContentLimit;
use crate::read::content_visitor::{ContentVisitor, EntriesPayload, WalkTotals};
use crate::read::native::digest_check::DigestCheck;
use crate::read::native::given_back::GivenBackFrames;
use crate::read::native::index_reading::{find_archives, too_many_archives};
use crate::read::native::walk::{WalkOptions, walk};
use crate::read::work_meter::WorkMeter;
use crate::store::carried_modules::DecoderFrames;
use crate::store::decoders::Decoders;
use crate::store::frames::{ArchiveFeed, FrameReader, IsGivenBack, limits_for};

/// Reads all archives of a file or a pipe sequentially, each with its own crew.
pub(crate) fn walk_archives(
    feed: ArchiveFeed,
    options: &ReadOptions,
    limit: &ContentLimit,
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let limits = limits_for(options.memory_bytes);
    let source = feed.source();
    let found = match source.as_deref().map(find_archives) {
        Some(Err(error)) if error.kind == ErrorKind::Io => return Err(error),
        // The walk finds the damage again, with its location.
        Some(Err(_)) | None => Vec::new(),
        Some(Ok(found)) => found,
    };
    // Before anything is decoded; the walk verifies it against the extents.
    let stated = found.iter().map(|found| found.end.content_bytes);
    limit.check(stated.fold(0, u64::saturating_add))?;
    let mut reader = Box::new(FrameReader::open(feed, limits)?);
    let threads = options.threads.max(1);
    let read_options = options;
    let options = WalkOptions {
        temporary: options.temporary.clone(),
        threads,
        memory_bytes: options.memory_bytes,
        limits,
        meter: Arc::new(WorkMeter::new(options)),
        content_limit: limit.clone(),
    };
    let mut totals = WalkTotals::default();
    for _ in 0..ARCHIVES_MAX {
        let bytes_before = totals.archive_bytes;
        let mut numbered = Renumbered {
            inner: visitor,
            members_before: totals.members as u64,
        };
        let mut walk_one = |reader, source: Option<Arc<dyn Source>>, found| {
            let found = source.as_ref().zip(found);
            let given_back = match found {
                Some((source, found)) => GivenBackFrames::read(&**source, found, &limits)?,
                None => None,
            };
            let mut reader: Box<FrameReader> = reader;
            reader.expect_given_back(given_back.clone().map(is_given_back));
            let decoders = Arc::new(match found {
                // Those of what was added later come behind the blocks that need them.
                Some((source, found)) => {
                    let frames = DecoderFrames::Chain(found.bytes.start, found.end.last_decoder);
                    Decoders::for_archive(source, frames, read_options)
                }
                None => Decoders::for_stream(read_options),
            });
            let mut visitor = DigestCheck::new(&mut numbered, found, &limits)?;
            let totals = &mut totals;
            crew(threads, |crew| {
                let (input, visitor) = ((source.clone(), given_back), &mut visitor);
                let reader = (reader, decoders);
                walk(crew, reader, input, &options, visitor, watch, totals)
            })
        };
        if let Some((archive, own_bytes)) = reader.take_whole()? {
            let archive: Arc<dyn Source> = Arc::new(MemorySource::new(archive));
            let found = find_archives(&*archive)?;
            let feed = ArchiveFeed::Source(archive.clone());
            let inner = Box::new(FrameReader::open(feed, limits)?);
            walk_one(inner, Some(archive), found.first())?;
            totals.archive_bytes = bytes_before + own_bytes;
            // Checks what follows the archive.
            reader.next()?;
        } else {
            let start = reader.archive_start();
            let archive = found.iter().find(|found| found.bytes.start == start);
            reader = walk_one(reader, source.clone(), archive)?;
        }
        if !reader.begin_next_archive() {
            // Includes appendices, which no archive counts.
            totals.archive_bytes = reader.offset();
            return Ok(totals);
        }
    }
    Err(too_many_archives().at_offset(reader.archive_start()))
}

/// What a reader of frames asks.
pub(crate) fn is_given_back(frames: Arc<GivenBackFrames>) -> IsGivenBack {
    Box::new(move |kind, offset| frames.has_frame(kind, offset))
}

/// Numbers an archive's members after those of earlier archives.
struct Renumbered<'a> {
    inner: &'a mut dyn ContentVisitor,
    members_before: u64,
}

impl Renumbered<'_> {
    fn numbered(&self, start: &MemberStart) -> MemberStart {
        MemberStart {
            member_id: start.member_id.saturating_add(self.members_before),
            ..start.clone()
        }
    }
}

impl ContentVisitor for Renumbered<'_> {
    fn takes_generations(&self) -> bool {
        self.inner.takes_generations()
    }

    fn start(&mut self, start: &MemberStart) -> Result<Option<Arc<dyn Source>>> {
        self.inner.start(&self.numbered(start))
    }

    fn content(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.content(bytes)
    }

    fn zeros(&mut self, length_bytes: u64) -> Result<()> {
        self.inner.zeros(length_bytes)
    }

    fn given_back(&mut self, length_bytes: u64) -> Result<()> {
        self.inner.given_back(length_bytes)
    }

    fn end(
        &mut self,
        start: &MemberStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
    ) -> Result<()> {
        self.inner.end(&self.numbered(start), end, entries)
    }

    fn broken(&mut self, start: &MemberStart, entries: Vec<EntriesPayload>) -> Result<()> {
        self.inner.broken(&self.numbered(start), entries)
    }
}
