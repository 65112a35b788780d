//! What of an archive was given back to the file system.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::{Catalog, FrameKind, GoneFrames, Limits};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::read::native::generations::read_catalog;
use crate::read::native::index_reading::FoundArchive;
use crate::read::store_reader::BlockLocation;

/// The frames that an archive has given back, by their offsets in the file.
#[derive(Debug, Default)]
pub(crate) struct GivenBackFrames {
    frames: GoneFrames,
    /// Where the archive starts in the file.
    archive_start: u64,
    /// The ids of the members of each kept generation.
    kept: Vec<Range<u64>>,
}

impl GivenBackFrames {
    /// What this catalog of an archive that starts here says.
    pub(crate) fn of(catalog: &Catalog, archive_start: u64) -> GivenBackFrames {
        let rows = catalog.generations.iter();
        let members =
            rows.map(|row| row.first_member..row.first_member.saturating_add(row.member_count));
        GivenBackFrames {
            frames: catalog.gone.clone(),
            archive_start,
            kept: members.collect(),
        }
    }

    /// What an archive says of itself; `None` if nothing was given back, or its catalog cannot be
    /// read: who reads the archive finds out why.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read(
        source: &dyn Source,
        archive: &FoundArchive,
        limits: &Limits,
    ) -> Result<Option<Arc<GivenBackFrames>>> {
        let Some(end) = &archive.end.generation else {
            return Ok(None);
        };
        let start = archive.bytes.start;
        match read_catalog(source, start, end.catalog, limits) {
            Err(error) if error.kind == ErrorKind::Io => Err(error),
            Ok(catalog) if !catalog.gone.is_empty() => {
                Ok(Some(Arc::new(GivenBackFrames::of(&catalog, start))))
            }
            _ => Ok(None),
        }
    }

    /// Whether the frame of a block that begins here was given back.
    pub(crate) fn contains(&self, frame_offset: u64) -> bool {
        let inside = frame_offset.checked_sub(self.archive_start);
        inside.is_some_and(|offset| self.frames.contains(offset))
    }

    /// Whether this frame was: only blocks are.
    pub(crate) fn has_frame(&self, kind: FrameKind, frame_offset: u64) -> bool {
        kind == FrameKind::Block && self.contains(frame_offset)
    }

    /// Whether this block was.
    pub(crate) fn has(&self, location: &BlockLocation) -> bool {
        self.contains(location.frame_offset)
    }

    /// Content of this member is gone.
    ///
    /// # Errors
    /// `Damaged` if a kept generation has the member.
    pub(crate) fn check_gone(&self, member_id: u64) -> Result<()> {
        let is_kept = self.kept.iter().any(|members| members.contains(&member_id));
        if is_kept { Err(Error::given_back()) } else { Ok(()) }
    }

    /// The bytes of the frames.
    pub(crate) fn frame_bytes(&self) -> u64 {
        self.frames.frame_bytes()
    }
}
