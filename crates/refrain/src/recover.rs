//! Extracts archives that may be damaged: delivers what is intact, and names the rest.

use std::sync::Arc;

use refrain_storage::Source;

use crate::archive::Archive;
use crate::damage::{Damage, DamagedPart, DamagedPlace};
use crate::dialect::{Dialect, WalkArchive, Way};
use crate::error::{Error, ErrorKind, Result};
use crate::extract::has_trees;
use crate::extraction::{Extraction, OpenMember};
use crate::going_on::GoingOn;
use crate::input::{Input, Recognized};
use crate::member_extraction::{Begun, extract_members};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::native::scan::lost_places_of;
use crate::store::envelope::open::unlocked;
use crate::store::frames::{ArchiveFeed, limits_for};
use crate::store::pipe_copy::PipeCopy;
use crate::targets::{ExtractSummary, Targets};
use crate::verify::{limited, run};

/// Like [`extract`](crate::extract()), but continues after damage: every provably intact file is
/// delivered. A file is intact if all frames that it needs are, including the one with its entry.
/// The others are reported, with the missing ranges. With `keep_broken` they are delivered too,
/// with zeros for what is missing. Then the member's hash cannot be compared.
///
/// An archive that is already open was opened by [`Archive::open_or_scan`]. One from a non-seekable
/// stream is read to its end, if there is a directory for temporary content and the archive takes
/// at most half of the free space there; otherwise what precedes the first damage is delivered.
/// Files of other formats are delivered up to the damage.
///
/// # Errors
/// As [`extract`](crate::extract()), but `Damaged` only if nothing is found, or if everything in
/// the archive is intact and contradicts itself.
pub fn recover(
    input: impl Into<Input>,
    targets: &mut dyn Targets,
    keep_broken: bool,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<(ExtractSummary, Damage)> {
    let Recognized {
        reader,
        feed,
        archive,
    } = input.into().recognize(options)?;
    let walk = match reader.way {
        Way::Walk(walk) => walk,
        Way::Extract(extract, format) => {
            let summary = extract(feed, format, targets, options, watch)?;
            return Ok((summary, Damage::default()));
        }
    };
    let is_native = reader.dialect() == Dialect::Native;
    let going_on = GoingOn::new(keep_broken);
    let archive = match (archive, feed) {
        (Some(archive), _) if is_native => archive,
        (None, ArchiveFeed::Source(source)) if is_native => Archive::open_or_scan(source, options)?,
        (_, feed) => {
            return recover_feed((walk, is_native), feed, targets, going_on, options, watch);
        }
    };
    let mut begun = Begun {
        member: 0,
        target: None,
    };
    let is_by_members = archive.is_scanned()
        || targets.is_part()
        || archive.opened.generations().is_some()
        || archive.opened.expects_members()
        || has_trees(&archive)?;
    if !is_by_members {
        let (feed, limit) = limited(ArchiveFeed::Source(archive.source.clone()), options)?;
        let mut extraction = Extraction::new(targets, options, &limit, watch);
        let error = match run(walk, (feed, limit), &mut extraction, options, watch) {
            Ok(summary) => return Ok((summary, Damage::default())),
            Err(error) if error.kind == ErrorKind::Damaged => error,
            Err(error) => return Err(error),
        };
        begun = begun_by(extraction);
        let has_places = going_on.add_places_of(&*archive.source, options)?;
        if begun.member >= archive.member_count() && !has_places {
            return Err(error);
        }
    }
    go_on(archive, targets, (going_on, begun), options, watch)
}

/// What a forward extraction had begun when it met damage.
fn begun_by(extraction: Extraction<'_>) -> Begun {
    let (closed, open) = extraction.into_state();
    Begun {
        member: closed,
        target: open.map(OpenMember::into_target),
    }
}

/// Extracts what was not extracted yet.
fn go_on(
    archive: Archive,
    targets: &mut dyn Targets,
    (going_on, begun): (GoingOn, Begun),
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<(ExtractSummary, Damage)> {
    archive.use_memory_for_blocks();
    let on = Some((&going_on, begun));
    let summary = extract_members(&archive, targets, on, options, watch)?;
    let mut damage = going_on.into_damage();
    if archive.is_scanned() && damage.is_none() {
        // All frames are there, and contradict each other.
        let opened = Archive::open_checked(archive.source, options);
        damage.add_places(opened.err().as_ref().map(place_of));
    }
    Ok((summary, damage))
}

/// Searches for all frames and returns what is damaged or missing in a file's archives. Decodes no
/// block.
///
/// # Errors
/// `Usage` if it is encrypted, and no secret of the options opens it; `Io`.
pub fn damaged_places(
    source: &Arc<dyn Source>,
    options: &ReadOptions,
) -> Result<Vec<DamagedPlace>> {
    let source = unlocked(source.clone(), options)?.source;
    lost_places_of(&*source, &limits_for(options.memory_bytes))
}

/// Extracts an archive from front to back. After damage it continues with the copy of a pipe.
fn recover_feed(
    (walk, is_native): (WalkArchive, bool),
    feed: ArchiveFeed,
    targets: &mut dyn Targets,
    going_on: GoingOn,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<(ExtractSummary, Damage)> {
    let (feed, copy) = match feed {
        ArchiveFeed::Stream(stream) if is_native => {
            let (stream, copy) = PipeCopy::start(stream, options.temporary.as_deref());
            (ArchiveFeed::Stream(stream), copy)
        }
        feed => (feed, None),
    };
    let (feed, limit) = limited(feed, options)?;
    let mut extraction =
        Extraction::new(targets, options, &limit, watch).closing_broken(&going_on, copy.clone());
    let ended = run(walk, (feed, limit), &mut extraction, options, watch);
    let error = match ended {
        Ok(summary) => return Ok((summary, Damage::default())),
        Err(error) if error.kind == ErrorKind::Damaged => error,
        Err(error) => return Err(error),
    };
    if let Some(copy) = copy.filter(|copy| copy.is_there()) {
        let begun = begun_by(extraction);
        let source = copy.complete()?.ok_or(error)?;
        let archive = Archive::open_or_scan(source, options)?;
        return go_on(archive, targets, (going_on, begun), options, watch);
    }
    // Content that is compared only at its end, or was found wrong, is not known to be right.
    let is_proven = is_native && has_place(&error);
    if !is_proven && !going_on.keeps_broken() {
        return Err(error);
    }
    extraction.close_open()?;
    let (closed, _) = extraction.into_state();
    let mut damage = going_on.into_damage();
    if closed == 0 && !damage.has_losses() {
        return Err(error);
    }
    damage.add_places([place_of(&error)]);
    let summary = ExtractSummary {
        content_bytes: 0,
        archive_bytes: 0,
        members: closed,
        entries: 0,
    };
    Ok((summary, damage))
}

/// Whether an error is about a place in the archive, not about a hash of all content.
fn has_place(error: &Error) -> bool {
    error.location.archive_offset.is_some() || error.cut_off_at().is_some()
}

fn place_of(error: &Error) -> DamagedPlace {
    if let Some(cut) = error.cut_off_at() {
        return DamagedPlace {
            part: DamagedPart::CutOff,
            bytes: cut..cut,
        };
    }
    let start = error.location.archive_offset.unwrap_or(0);
    DamagedPlace {
        part: match error.location.block {
            Some(block) => DamagedPart::Block(block),
            None => DamagedPart::Frames(1),
        },
        bytes: start..start,
    }
}
