//! The verb extract: reads, checks and delivers every byte of an archive.

use crate::archive::Archive;
use crate::archive_info::MemberKind;
use crate::dialect::{Dialect, WalkArchive, Way};
use crate::error::{ErrorKind, Result};
use crate::extraction::Extraction;
use crate::input::{Input, Recognized};
use crate::member_extraction::extract_members;
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::store::frames::ArchiveFeed;
use crate::verify::{limited, run};

pub use crate::targets::{ExtractSummary, Target, Targets, TreeTarget};
pub use crate::verify::verify;

/// Extracts all members of an archive, or the content of a file of another format: one member
/// without a name.
///
/// A member's content hash and further digests are compared before it is published. Every frame is
/// read and checked, unless only a part of the archive is requested.
///
/// An archive from a non-seekable stream is read from front to back. As many of its latest bytes
/// are kept in memory as it states (its reach), at most half of the options' memory.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` for the archive, with the location, `Limit` if the reach
/// exceeds what may be kept; `Io` for reads and writes; any error of `targets`. Members closed
/// before stay published; the open one is dropped.
pub fn extract(
    input: impl Into<Input>,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let recognized = input.into().recognize(options)?;
    let walk = match recognized.reader.way {
        Way::Walk(walk) => walk,
        Way::Extract(extract, format) => {
            return extract(recognized.feed, format, targets, options, watch);
        }
    };
    match by_members(recognized, &*targets, options)? {
        Ok(archive) => {
            archive.use_memory_for_blocks();
            extract_members(&archive, targets, None, options, watch)
        }
        Err(feed) => extract_feed(walk, feed, targets, options, watch),
    }
}

/// The archive, if it is extracted member by member, or the feed for a forward pass.
fn by_members(
    recognized: Recognized,
    targets: &dyn Targets,
    options: &ReadOptions,
) -> Result<std::result::Result<Archive, ArchiveFeed>> {
    let Recognized {
        reader,
        feed,
        archive,
    } = recognized;
    let Some(source) = feed
        .source()
        .filter(|_| reader.dialect() == Dialect::Native)
    else {
        return Ok(Err(feed));
    };
    let opened = match archive {
        Some(archive) => Ok(archive),
        None => Archive::open_as(reader, source, options),
    };
    let chosen = opened.and_then(|archive| {
        let is_chosen = archive.is_scanned()
            || targets.is_part()
            || archive.opened.generations().is_some()
            || archive.opened.expects_members()
            || has_trees(&archive)?;
        Ok(is_chosen.then_some(archive))
    });
    match chosen {
        Ok(Some(archive)) => Ok(Ok(archive)),
        Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Usage) => Err(error),
        // A forward pass delivers what precedes damage, and does not need an index that takes too
        // much memory.
        Ok(None) | Err(_) => Ok(Err(feed)),
    }
}

/// Extracts an archive from front to back.
fn extract_feed(
    walk: WalkArchive,
    feed: ArchiveFeed,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let (feed, limit) = limited(feed, options)?;
    let mut extraction = Extraction::new(targets, options, &limit, watch);
    run(walk, (feed, limit), &mut extraction, options, watch)
}

/// Whether any member has entries.
pub(crate) fn has_trees(archive: &Archive) -> Result<bool> {
    let mut found = false;
    archive.for_each_member(&mut |_, member| {
        found |= matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
        Ok(())
    })?;
    Ok(found)
}
