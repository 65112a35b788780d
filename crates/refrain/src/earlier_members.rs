//! The members of an earlier generation to which those of a new one correspond.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use refrain_format::{EpochSums, Extent, GenerationInfo, IndexMember};
use refrain_longmatch::TrailPiece;
use refrain_storage::Source;

use crate::error::Result;
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::native::indexed::IndexedArchive;
use crate::write::pipeline::pieces::EarlierPieces;
use crate::write::pipeline::trails::{EarlierContent, Predecessor};

/// The members with these names in the last of these generations that is of this host.
///
/// # Errors
/// From the index.
pub(crate) fn earlier_members(
    archive: &IndexedArchive,
    generations: &[GenerationInfo],
    host: &[u8],
    names: &HashSet<&[u8]>,
) -> Result<HashMap<Vec<u8>, IndexMember>> {
    let mut found = HashMap::new();
    let Some(last) = generations.iter().rfind(|row| row.host == host) else {
        return Ok(found);
    };
    for id in last.first_member..last.first_member.saturating_add(last.member_count) {
        if found.len() == names.len() {
            break;
        }
        if let Some(row) = archive.member_with_id(id)?
            && names.contains(&row.start.name[..])
        {
            found.entry(row.start.name.clone()).or_insert(row);
        }
    }
    Ok(found)
}

/// What a new member may repeat of this one. `archive_bytes` are the bytes of the archive; its
/// digests are read as far as there are at most `pieces_max`.
///
/// # Errors
/// `Io`; the system refuses memory.
pub(crate) fn predecessor(
    archive_bytes: &dyn Source,
    member: &IndexMember,
    pieces_max: usize,
) -> Result<Predecessor> {
    let start = member.start.content_start;
    let (end_offset, member_id) = (member.end_frame_offset, member.start.member_id);
    let pieces = EarlierPieces::read(archive_bytes, end_offset, member_id, pieces_max)?;
    Ok(Predecessor {
        content: start..start.saturating_add(member.end.content_bytes),
        pieces: Arc::new(pieces),
    })
}

/// The content of all earlier generations.
pub(crate) struct EarlierExtents(pub Arc<IndexedArchive>);

/// Sources of a range, which are taken piece by piece.
struct Sources {
    rest: std::vec::IntoIter<(u64, u64)>,
    offset: u64,
    left: u64,
}

impl Sources {
    fn new(sources: Vec<(u64, u64)>) -> Sources {
        Sources {
            rest: sources.into_iter(),
            offset: 0,
            left: 0,
        }
    }

    /// The source of the next bytes; `None` if there is none for all of them at one place.
    fn take(&mut self, mut length: u64) -> Option<u64> {
        if self.left == 0 {
            (self.offset, self.left) = self.rest.next()?;
        }
        let start = (length <= self.left).then_some(self.offset);
        while length > self.left {
            length -= self.left;
            (self.offset, self.left) = self.rest.next()?;
        }
        self.offset += length;
        self.left -= length;
        start
    }
}

impl EarlierExtents {
    fn resolved(&self, range: Range<u64>) -> Result<EpochMap> {
        self.0.resolved(range, &self.0.meter())
    }
}

impl EarlierContent for EarlierExtents {
    fn pieces(&self, range: Range<u64>) -> Result<Vec<TrailPiece>> {
        let map = self.resolved(range.clone())?;
        let mut sources = Sources::new(self.sources(range.clone()).unwrap_or_default());
        let mut offset_in_content = range.start;
        let mut pieces = vec![];
        for (origin, length) in map.origins(range) {
            let source_in_content = sources.take(length);
            if let Origin::Store(offset_in_store) = origin {
                pieces.push(TrailPiece {
                    offset_in_content,
                    length,
                    offset_in_store,
                    source_in_content,
                });
            }
            offset_in_content += length;
        }
        Ok(pieces)
    }

    fn sources(&self, range: Range<u64>) -> Result<Vec<(u64, u64)>> {
        self.0.sources(range, &self.0.meter())
    }

    fn sums(&self, range: Range<u64>) -> Result<EpochSums> {
        let map = self.resolved(range.clone())?;
        let mut sums = EpochSums::default();
        for (origin, length) in map.origins(range) {
            sums.add(&match origin {
                Origin::Store(offset_in_store) => Extent::Copy {
                    length,
                    offset_in_store,
                },
                Origin::Fill { pattern, .. } => Extent::Fill {
                    length,
                    pattern: *map.pattern(pattern),
                },
            });
        }
        Ok(sums)
    }
}
