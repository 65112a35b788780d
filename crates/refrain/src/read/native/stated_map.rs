//! The extents of an epoch as stated by its frame, before references are resolved.

use std::ops::Range;

use refrain_codec::Workspace;
use refrain_format::{EpochSums, Extent, ExtentReader, ExtentsHeader, Pattern};

use crate::error::Result;
use crate::read::epoch_map::{EpochMap, IS_PATTERN, Origin};
use crate::store::decoders::Decoders;
use crate::store::sections::decode_section;

/// Marks an origin that is an offset in the content.
const IS_REFERENCE: u64 = 1 << 62;

/// The extents of an epoch as stated by its frame.
pub(crate) struct StatedMap {
    /// Origins may be marked as references.
    pub(crate) map: EpochMap,
    pub(crate) has_references: bool,
}

/// A part of a content range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    Store(u64),
    Fill {
        pattern: Pattern,
        phase: u64,
    },
    /// The same content as at this offset.
    Reference(u64),
}

impl StatedMap {
    /// Decodes and checks the section of an Extents frame. Also returns the sums of its extents,
    /// without references.
    pub(crate) fn parse(
        workspace: &mut Workspace,
        decoders: &Decoders,
        head: &ExtentsHeader,
        data: &[u8],
    ) -> Result<(StatedMap, EpochSums)> {
        let raw = decode_section(
            workspace,
            decoders,
            &head.coding,
            head.packed_raw_bytes,
            data,
        )?;
        let mut sums = EpochSums::default();
        let stated = Self::read(head, &raw, |_, extent| sums.add(extent))?;
        Ok((stated, sums))
    }

    /// Checks the decoded section of an Extents frame. Calls `each` for the extents, with the
    /// reader positioned after each.
    pub(crate) fn read(
        head: &ExtentsHeader,
        section: &[u8],
        mut each: impl FnMut(&ExtentReader<'_>, &Extent),
    ) -> Result<StatedMap> {
        let mut map = EpochMap::empty(head.content_start);
        let (mut fresh, mut has_references) = (head.store_start, false);
        let mut reader = ExtentReader::new(head, section)?;
        while let Some(extent) = reader.next() {
            let extent = extent?;
            each(&reader, &extent);
            let origin = match extent {
                Extent::Fresh { length } => {
                    fresh += length;
                    fresh - length
                }
                Extent::Copy {
                    offset_in_store, ..
                } => offset_in_store,
                Extent::Reference {
                    offset_in_content, ..
                } => {
                    has_references = true;
                    IS_REFERENCE | offset_in_content
                }
                Extent::Fill { pattern, .. } => {
                    map.patterns.push(pattern);
                    IS_PATTERN | (map.patterns.len() as u64 - 1)
                }
            };
            map.append(origin, extent.length());
        }
        Ok(StatedMap {
            map,
            has_references,
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.map.memory_bytes()
    }

    /// Whether there are references to earlier content.
    pub(crate) fn has_references(&self) -> bool {
        self.has_references
    }

    pub(crate) fn without_references(&self) -> Option<&EpochMap> {
        (!self.has_references).then_some(&self.map)
    }

    pub(crate) fn content(&self) -> Range<u64> {
        self.map.content()
    }

    /// The pieces of `range`, which is inside the epoch, with their lengths.
    pub(crate) fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = (Piece, u64)> + '_ {
        self.map.origins(range).map(|(origin, length)| {
            let piece = match origin {
                Origin::Store(offset) if offset & IS_REFERENCE != 0 => {
                    Piece::Reference(offset & !IS_REFERENCE)
                }
                Origin::Store(offset) => Piece::Store(offset),
                Origin::Fill { pattern, phase } => Piece::Fill {
                    pattern: *self.map.pattern(pattern),
                    phase,
                },
            };
            (piece, length)
        })
    }
}
