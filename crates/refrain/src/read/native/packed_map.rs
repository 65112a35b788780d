//! The extents of an epoch for random reads: packed as in the frame, with marks.
//!
//! An extent takes about 3 bytes instead of the 12 of an [`EpochMap`](crate::read::epoch_map), so
//! that a reader with little memory can hold the extents of a large archive. A read unpacks at most
//! [`EXTENTS_BETWEEN_MARKS`] extents that it does not need. (A disk image of 4 GiB, 3.0 million
//! extents in 410 epochs: 9.0 MB of sections and 1.9 MB of marks instead of 36.4 MB.)

use std::ops::Range;
use std::sync::Arc;

use refrain_codec::Workspace;
use refrain_format::{Extent, ExtentPosition, ExtentReader, ExtentsHeader};
use refrain_pool::Lock;

use crate::error::{Error, Result};
use crate::read::native::stated_map::{Piece, StatedMap};
use crate::store::decoders::Decoders;
use crate::store::sections::decode_section;

/// How many extents apart a reader can start.
const EXTENTS_BETWEEN_MARKS: usize = 128;

/// The extents of an epoch, unpacked on demand.
pub(crate) struct PackedMap {
    header: ExtentsHeader,
    section: Vec<u8>,
    marks: Vec<ExtentPosition>,
    has_references: bool,
    /// Expanded for quicker reading while the map is one of the latest: a forward pass uses each
    /// map once.
    expanded: Lock<Option<Arc<StatedMap>>>,
}

impl PackedMap {
    /// Decodes the section of an Extents frame, and checks all extents.
    pub(crate) fn parse(
        workspace: &mut Workspace,
        decoders: &Decoders,
        header: &ExtentsHeader,
        data: &[u8],
    ) -> Result<PackedMap> {
        let (coding, raw_bytes) = (&header.coding, header.packed_raw_bytes);
        let section = decode_section(workspace, decoders, coding, raw_bytes, data)?;
        let mut marks = vec![ExtentReader::new(header, &section)?.position()];
        let mut count: usize = 0;
        let expanded = StatedMap::read(header, &section, |reader, _| {
            count += 1;
            if count.is_multiple_of(EXTENTS_BETWEEN_MARKS) {
                marks.push(reader.position());
            }
        })?;
        marks.shrink_to_fit();
        Ok(PackedMap {
            header: *header,
            section,
            marks,
            has_references: expanded.has_references(),
            expanded: Lock::new(Some(Arc::new(expanded))),
        })
    }

    pub(crate) fn content(&self) -> Range<u64> {
        self.header.content_start..self.header.content_end()
    }

    /// Where the epoch's new bytes start in the store.
    pub(crate) fn store_start(&self) -> u64 {
        self.header.store_start
    }

    /// Whether there are references to earlier content.
    pub(crate) fn has_references(&self) -> bool {
        self.has_references
    }

    /// The expanded extents, if the map is one of the latest.
    pub(crate) fn expanded(&self) -> Option<Arc<StatedMap>> {
        self.expanded.lock().clone()
    }

    /// The memory of the expanded form, in bytes.
    pub(crate) fn expanded_bytes(&self) -> u64 {
        let expanded = self.expanded.lock();
        expanded.as_ref().map_or(0, |map| map.memory_bytes() as u64)
    }

    /// Drops the expanded form.
    pub(crate) fn forget_expanded(&self) {
        *self.expanded.lock() = None;
    }

    /// Its memory in bytes, without the expanded form.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.section.capacity()
            + self.marks.capacity() * size_of::<ExtentPosition>()
    }

    /// The pieces of `range`, which is inside the epoch, with their lengths.
    pub(crate) fn pieces(
        &self,
        range: Range<u64>,
    ) -> Result<impl Iterator<Item = Result<(Piece, u64)>> + '_> {
        let offset = range.start.saturating_sub(self.header.content_start);
        let marks_until = (self.marks).partition_point(|mark| mark.offset_in_epoch() <= offset);
        let mark = (self.marks.get(marks_until.saturating_sub(1))).ok_or_else(not_covered)?;
        let mut pieces = Pieces {
            reader: ExtentReader::resume(&self.header, &self.section, mark)?,
            content_start: self.header.content_start,
            range,
        };
        Ok(std::iter::from_fn(move || pieces.next().transpose()))
    }
}

struct Pieces<'a> {
    reader: ExtentReader<'a>,
    content_start: u64,
    range: Range<u64>,
}

impl Pieces<'_> {
    fn next(&mut self) -> Result<Option<(Piece, u64)>> {
        while !self.range.is_empty() {
            let start = self.content_start + self.reader.offset_in_epoch();
            let fresh_offset = self.reader.fresh_offset_in_store();
            let extent = self.reader.next().ok_or_else(not_covered)??;
            let end = (start + extent.length()).min(self.range.end);
            if end <= self.range.start {
                continue;
            }
            let inside = self.range.start - start;
            let length = end - self.range.start;
            self.range.start = end;
            let piece = match extent {
                Extent::Fresh { .. } => Piece::Store(fresh_offset + inside),
                Extent::Copy {
                    offset_in_store, ..
                } => Piece::Store(offset_in_store + inside),
                Extent::Reference {
                    offset_in_content, ..
                } => Piece::Reference(offset_in_content + inside),
                Extent::Fill { pattern, .. } => Piece::Fill {
                    pattern,
                    phase: inside,
                },
            };
            return Ok(Some((piece, length)));
        }
        Ok(None)
    }
}

fn not_covered() -> Error {
    Error::damaged("extents do not cover their epoch")
}

#[cfg(test)]
mod tests {
    use refrain_format::property::extents_from_seed;
    use refrain_format::{Coding, pack_extents};

    use super::*;

    /// The piece of each byte of the epoch, by counting: the naive way.
    fn piece_of_byte(extents: &[Extent], mut fresh: u64, mut offset: u64) -> Piece {
        for extent in extents {
            if offset < extent.length() {
                return match *extent {
                    Extent::Fresh { .. } => Piece::Store(fresh + offset),
                    Extent::Copy {
                        offset_in_store, ..
                    } => Piece::Store(offset_in_store + offset),
                    Extent::Reference {
                        offset_in_content, ..
                    } => Piece::Reference(offset_in_content + offset),
                    Extent::Fill { pattern, .. } => Piece::Fill {
                        pattern,
                        phase: offset,
                    },
                };
            }
            offset -= extent.length();
            if let Extent::Fresh { length } = extent {
                fresh += length;
            }
        }
        panic!("beyond the epoch");
    }

    #[test]
    fn any_range_has_the_pieces_of_the_extents() {
        for seed in 0..30 {
            let count = 1 + seed as usize * 20;
            let (content_start, store_start, extents) = extents_from_seed(seed, count);
            let packed = pack_extents(content_start, store_start, &extents).unwrap();
            let header = packed.header(0, (content_start, store_start), Coding::none());
            let map = PackedMap::parse(
                &mut Workspace::new(),
                &Decoders::own(),
                &header,
                &packed.raw,
            )
            .unwrap();
            assert_eq!(map.marks.len(), count / EXTENTS_BETWEEN_MARKS + 1);
            let is_reference = |extent: &Extent| matches!(extent, Extent::Reference { .. });
            assert_eq!(map.has_references(), extents.iter().any(is_reference));
            let content = map.content();
            let length = content.end - content.start;
            for step in 0..40 {
                let from = length * step / 40;
                let to = (from + 1 + length * (step % 7) / 6).min(length);
                let mut at = from;
                for found in map
                    .pieces(content_start + from..content_start + to)
                    .unwrap()
                {
                    let (piece, piece_bytes) = found.unwrap();
                    assert_eq!(piece, piece_of_byte(&extents, store_start, at));
                    at += piece_bytes;
                }
                assert_eq!(at, to);
            }
        }
    }
}
