//! The verb verify, and the forward pass that it shares with extraction.

use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart as FormatStart, RootHasher, member_hash};
use refrain_protect::HASH_BYTES;
use refrain_storage::Source;

use crate::archive::Archive;
use crate::dialect::{Dialect, DialectReader, WalkArchive, Way};
use crate::error::{Error, ErrorKind, Result};
use crate::input::{Input, Recognized};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_limit::ContentLimit;
use crate::read::content_visitor::{ContentVisitor, EntriesPayload};
use crate::read::native::frame_check::check_frames;
use crate::read::native::index_reading::find_archives;
use crate::read::native::indexed::IndexedArchive;
use crate::store::frames::{ArchiveFeed, limits_for};

pub use crate::read::native::frame_check::FrameTotals;
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
            let source = feed
                .source()
                .filter(|_| reader.dialect() == Dialect::Native);
            let feed = limited(feed, options)?;
            let summary = run(walk, feed, &mut Verification::default(), options, watch)?;
            if let Some(source) = source {
                check_kept(&source, options, watch)?;
            }
            Ok(summary)
        }
        Way::Extract(extract, format) => extract(feed, format, &mut Nowhere, options, watch),
    }
}

/// Checks the checksum and the order of every frame of an archive, and its index, without decoding
/// content: at the speed of reading, and as good as [`verify`] against disks and transfers that
/// alter bytes, but not against content that was encoded wrongly.
///
/// # Errors
/// `Usage` for archives of other formats, which have no frames; `Damaged`, `Unsupported`, `Limit`,
/// `Io`, `Cancelled`.
pub fn verify_frames(
    input: impl Into<Input>,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<FrameTotals> {
    let Recognized { reader, feed, .. } = input.into().recognize(options)?;
    if reader.dialect() != Dialect::Native {
        let text = "its parts have no checksums of their own: only decoding tests it";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    check_frames(feed, &limits_for(options.memory_bytes), watch)
}

/// As [`verify`] for a single archive of the native format, and compares all members with this root
/// hash, whatever the archive itself states.
///
/// # Errors
/// As [`verify`]; `Damaged` if they are others; `Usage` for other formats.
pub fn verify_root(
    input: impl Into<Input>,
    root_hash: &[u8; HASH_BYTES],
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let Recognized { reader, feed, .. } = input.into().recognize(options)?;
    verify_feed((reader, feed), root_hash, options, watch)
}

/// Checks that nothing was given back that kept generations need: of earlier content, the pass over
/// a layered tree sees only what other members have.
fn check_kept(source: &Arc<dyn Source>, options: &ReadOptions, watch: &dyn Watch) -> Result<()> {
    for found in find_archives(&**source)? {
        if found.end.generation.is_some() {
            let archive = IndexedArchive::open(source.clone(), &found, options, 1)?;
            Arc::new(archive).check_live(options.memory_bytes, watch)?;
        }
    }
    Ok(())
}

/// Nobody can vouch for a layered tree when content of earlier members was given back: what is left
/// of it cannot be compared with their hashes.
fn check_provable(archive: &Archive) -> Result<()> {
    if archive.given_back_bytes() > 0 && archive.opened.has_layers()? {
        let text = "a directory that is kept consists of earlier ones, and `compact` gave back a \
                    part of what can be compared with the root hash: `add --force-read` makes one \
                    that can be";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(())
}

impl Archive {
    /// As [`verify_root`], of this archive.
    ///
    /// # Errors
    /// As [`verify_root`].
    pub fn check_root(
        &self,
        root_hash: &[u8; HASH_BYTES],
        options: &ReadOptions,
        watch: &dyn Watch,
    ) -> Result<ExtractSummary> {
        let feed = ArchiveFeed::Source(self.source.clone());
        verify_feed((self.reader, feed), root_hash, options, watch)
    }
}

fn verify_feed(
    (reader, feed): (&'static DialectReader, ArchiveFeed),
    root_hash: &[u8; HASH_BYTES],
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let (Way::Walk(walk), Dialect::Native) = (&reader.way, reader.dialect()) else {
        let text = "only archives of Refrain's own format have a root hash";
        return Err(Error::new(ErrorKind::Usage, text));
    };
    // The walk compares the root hash of every generation, each of which covers the one before.
    let archive = feed
        .source()
        .map(|source| Archive::open_as(reader, source, options));
    // What cannot be opened is told by the walk, with its place.
    let archive = archive.and_then(Result::ok);
    let of_generation = archive.filter(|archive| !archive.generations().is_empty());
    if let Some(archive) = &of_generation {
        check_provable(archive)?;
    }
    let of_generation = of_generation.and_then(|archive| archive.root_hash());
    let feed = limited(feed, options)?;
    let mut verification = Verification {
        root: Some(RootHasher::default()),
    };
    let summary = run(*walk, feed, &mut verification, options, watch)?;
    let of_members = verification.root.map(|root| root.value());
    if of_generation.or(of_members) == Some(*root_hash) {
        Ok(summary)
    } else {
        Err(Error::damaged("the members are not those of the root hash"))
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

/// Takes nothing but the hashes of members, if their root hash is wanted.
#[derive(Default)]
struct Verification {
    root: Option<RootHasher>,
}

impl ContentVisitor for Verification {
    fn takes_generations(&self) -> bool {
        true
    }

    fn start(&mut self, _start: &FormatStart) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    fn content(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    fn zeros(&mut self, _length_bytes: u64) -> Result<()> {
        Ok(())
    }

    fn given_back(&mut self, _length_bytes: u64) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, start: &FormatStart, end: &MemberEnd, _: Vec<EntriesPayload>) -> Result<()> {
        if let Some(root) = &mut self.root {
            root.push(&member_hash(start, end));
        }
        Ok(())
    }
}
