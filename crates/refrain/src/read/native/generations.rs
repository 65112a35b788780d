//! Reads the catalog of an archive with generations.

use std::sync::Arc;

use refrain_format::{ArchiveEnd, Catalog, FrameKind, GenerationInfo, Limits, Payload};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::generation::GenerationChoice;
use crate::read::generations::Generations;
use crate::read::native::index_reading::{FoundArchive, end_before};
use crate::store::frames::read_frame_at;

/// Reads the catalog and chooses a generation. `None` if nothing was ever added.
///
/// # Errors
/// `Usage` if there is no such generation; `Damaged` for the catalog; `Io`.
pub(crate) fn open_generations(
    source: &dyn Source,
    archive: &FoundArchive,
    choice: &GenerationChoice,
    limits: &Limits,
) -> Result<Option<Generations>> {
    let Some(end) = &archive.end.generation else {
        return choice.of_one().map(|()| None);
    };
    let start = archive.bytes.start;
    let catalog = read_catalog(source, start, end.catalog, limits)?;
    let shown = choice.of(&catalog.generations)?.clone();
    showing(source, start, &archive.end, (Arc::new(catalog), shown)).map(Some)
}

/// The generations of the archive that starts here, of which this one is shown.
///
/// # Errors
/// `Damaged` for its End frame; `Io`.
pub(crate) fn showing(
    source: &dyn Source,
    archive_start: u64,
    archive_end: &ArchiveEnd,
    (catalog, shown): (Arc<Catalog>, GenerationInfo),
) -> Result<Generations> {
    let end = match shown.end {
        None => *archive_end,
        Some(end) => end_before(source, archive_start.saturating_add(end))?,
    };
    Ok(Generations {
        catalog,
        shown,
        root_hash: end.root_hash,
        previous_root_hash: end
            .generation
            .map(|generation| generation.previous_root_hash),
    })
}

/// Whether the index lists the names of the members that are shown: it does so for the last
/// generation.
pub(crate) fn lists_names(generations: &Generations, end: &ArchiveEnd) -> bool {
    let shown = &generations.shown;
    let first = end.generation.map(|generation| generation.first_member);
    shown.end.is_none() && first == Some(shown.first_member)
}

/// The catalog at this place.
///
/// # Errors
/// `Damaged`; `Io`.
pub(crate) fn read_catalog(
    source: &dyn Source,
    archive_start: u64,
    (offset, bytes): (u64, u64),
    limits: &Limits,
) -> Result<Catalog> {
    let offset = archive_start.saturating_add(offset);
    let frame = read_frame_at(source, offset, FrameKind::Catalog, Some(bytes), limits)?;
    match Payload::parse(FrameKind::Catalog, &frame.payload, limits) {
        Ok(Payload::Catalog(catalog)) => Ok(catalog),
        Ok(_) => Err(Error::new(ErrorKind::Internal, "a catalog is none")),
        Err(error) => Err(Error::from(error).at_offset(offset)),
    }
}
