//! Describes an archive piece by piece: extents, blocks, and the content of members.

use std::ops::Range;

use crate::archive_info::{self, codec_name, filters_text};
use crate::error::{Error, Result};
use crate::read::archive_layout::{
    ContentExtent, EachMemberContent, ExtentOrigin, LayoutBase, StoreBlock,
};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::native::indexed::{IndexedArchive, RESOLVED_BYTES_MAX};
use crate::read::native::packed_map::PackedMap;
use crate::read::native::stated_map::Piece;
use crate::read::store_reader::Depth;
use crate::read::work_meter::WorkMeter;

impl IndexedArchive {
    /// What precedes the next archive, if `base` precedes this one.
    pub(super) fn base_after(&self, base: LayoutBase) -> LayoutBase {
        LayoutBase {
            content_bytes: base.content_bytes.saturating_add(self.end.content_bytes),
            store_bytes: base.store_bytes.saturating_add(self.end.store_bytes),
        }
    }

    /// Calls `each` for the extents of all content. One epoch is in memory besides the cached ones.
    pub(super) fn extents_from(
        &self,
        base: LayoutBase,
        each: &mut dyn FnMut(ContentExtent) -> Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        while at < self.end.content_bytes {
            // Every epoch may cost what a read may cost.
            let meter = self.meter();
            let stated = self.map_of(at, &meter)?;
            let mut walk = ExtentWalk {
                archive: self,
                meter: &meter,
                base,
                at,
                each: &mut *each,
            };
            walk.epoch(&stated)?;
            at = stated.content().end;
        }
        Ok(())
    }

    /// Calls `each` for every block. Reads only the index.
    pub(super) fn blocks_from(
        &self,
        base: LayoutBase,
        each: &mut dyn FnMut(StoreBlock) -> Result<()>,
    ) -> Result<()> {
        self.index.for_each_block(&mut |row| {
            each(StoreBlock {
                offset_in_store: base.store_bytes.saturating_add(row.store_start),
                raw_bytes: row.raw_bytes,
                stored_bytes: row.frame_bytes,
                codec: codec_name(row.codec),
                filters: filters_text(row.filter_ids),
                is_given_back: self.is_given_back(row),
            })
        })
    }

    /// Calls `each` for every member and the range of its content.
    pub(super) fn contents_from(
        &self,
        base: LayoutBase,
        each: &mut EachMemberContent<'_>,
    ) -> Result<()> {
        self.index.for_each_member(&mut |number, start, end| {
            let from = base.content_bytes.saturating_add(start.content_start);
            let range = from..from.saturating_add(end.content_bytes);
            each(number, &archive_info::member(start, end), range)
        })
    }

    /// Fills `buffer` with store bytes, all of which exist.
    pub(super) fn read_store_at(&self, offset_in_store: u64, buffer: &mut [u8]) -> Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let mut map = EpochMap::empty(0);
        map.append(offset_in_store, buffer.len() as u64);
        let meter = self.meter();
        self.store.fill(&map, 0, buffer, Depth::Whole, Some(&meter))
    }
}

struct ExtentWalk<'a> {
    archive: &'a IndexedArchive,
    meter: &'a WorkMeter,
    base: LayoutBase,
    /// The content before it was visited.
    at: u64,
    each: &'a mut dyn FnMut(ContentExtent) -> Result<()>,
}

impl ExtentWalk<'_> {
    fn epoch(&mut self, stated: &PackedMap) -> Result<()> {
        // Where the next bytes that occur for the first time are.
        let mut frontier = stated.store_start();
        for piece in stated.pieces(stated.content())? {
            let (piece, length_bytes) = piece?;
            match piece {
                Piece::Store(offset_in_store) if offset_in_store == frontier => {
                    frontier += length_bytes;
                    let offset_in_store = self.in_store(offset_in_store);
                    self.visit(length_bytes, ExtentOrigin::First { offset_in_store })?;
                }
                Piece::Store(offset_in_store) => {
                    let offset_in_store = self.in_store(offset_in_store);
                    self.visit(length_bytes, ExtentOrigin::Repeat { offset_in_store })?;
                }
                Piece::Fill { pattern, .. } => {
                    let is_zero = pattern.is_zero();
                    self.visit(length_bytes, ExtentOrigin::Fill { is_zero })?;
                }
                Piece::Reference(offset) => self.reference(offset..offset + length_bytes)?,
            }
        }
        Ok(())
    }

    /// Visits the extents of content that repeats a range of earlier content.
    fn reference(&mut self, earlier: Range<u64>) -> Result<()> {
        let mut from = earlier.start;
        while from < earlier.end {
            let to = earlier.end.min(from + RESOLVED_BYTES_MAX);
            let map = self.archive.resolved(from..to, self.meter)?;
            for (origin, length_bytes) in map.origins(from..to) {
                let origin = match origin {
                    Origin::Store(offset) => ExtentOrigin::Repeat {
                        offset_in_store: self.in_store(offset),
                    },
                    Origin::Fill { pattern, .. } => ExtentOrigin::Fill {
                        is_zero: map.pattern(pattern).is_zero(),
                    },
                };
                self.visit(length_bytes, origin)?;
            }
            from = to;
        }
        Ok(())
    }

    fn in_store(&self, offset: u64) -> u64 {
        self.base.store_bytes.saturating_add(offset)
    }

    fn visit(&mut self, length_bytes: u64, origin: ExtentOrigin) -> Result<()> {
        let content_offset = self.base.content_bytes.saturating_add(self.at);
        self.at += length_bytes;
        if length_bytes == 0 {
            return Err(Error::damaged("an extent is empty").at_content(content_offset));
        }
        (self.each)(ContentExtent {
            content_offset,
            length_bytes,
            origin,
        })
    }
}
