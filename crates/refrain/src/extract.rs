//! The verb extract: every byte of an archive is read, checked and delivered.

use std::io::Read;
use std::sync::Arc;

use refrain_storage::Source;

use crate::archive::Archive;
use crate::archive_info::MemberKind;
use crate::dialect::Dialect;
use crate::error::{ErrorKind, Result};
use crate::extraction::Extraction;
use crate::member_extraction::extract_members;
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::store::frames::ArchiveFeed;
use crate::verify::{limited, run};

pub use crate::targets::{ExtractSummary, Target, Targets, TreeTarget};
pub use crate::verify::{verify, verify_stream};

/// Extracts all members of an archive that can be read at any offset.
///
/// The content hash and further digests of a member are compared before it is published. Every
/// frame is read and checked, unless only a part of the archive is asked for.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` for the archive, with the location; `Io` for reads and
/// writes; any error of `targets`. Members that were closed before remain published; the one that
/// is open is dropped.
pub fn extract(
    source: Arc<dyn Source>,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    if Dialect::of(&*source)? == Dialect::Native {
        match Archive::open(source.clone(), options) {
            Ok(archive) if targets.is_part() || matches!(has_trees(&archive), Ok(true)) => {
                archive.use_memory_for_blocks();
                return extract_members(&archive, &source, targets, None, options, watch);
            }
            // Damage is found again by what follows, with its location.
            Err(error) if error.kind == ErrorKind::Io => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    extract_feed(ArchiveFeed::Source(source), targets, options, watch)
}

/// Like [`extract`], for an archive from a non-seekable stream. It retains as many of the archive's
/// latest bytes in memory as the archive states (its reach), at most half of the options' memory.
///
/// # Errors
/// As [`extract`]; `Limit` if the reach is larger than what may be retained.
pub fn extract_stream(
    stream: Box<dyn Read + Send>,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    extract_feed(ArchiveFeed::Stream(stream), targets, options, watch)
}

/// Extracts an archive from front to back.
fn extract_feed(
    feed: ArchiveFeed,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let (feed, limit) = limited(feed, options)?;
    let mut extraction = Extraction::new(targets, options, &limit, watch);
    run((feed, limit), &mut extraction, options, watch)
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
