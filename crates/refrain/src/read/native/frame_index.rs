//! Where the frames of an opened archive are: the only way by which reading by offset asks for
//! blocks, epochs, members and entries.

use std::ops::Range;

use refrain_format::{
    Index, IndexBlock, IndexEntries, IndexEpoch, IndexTotals, MemberEnd, MemberKind, MemberStart,
};

use crate::error::{Error, Result};

/// What reading the content of a member needs to know of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberOutline {
    pub kind: MemberKind,
    /// Where its content begins in the content of all members.
    pub content_start: u64,
    /// The length of its content in bytes.
    pub content_bytes: u64,
}

/// A complete member.
#[derive(Debug, Clone)]
pub(crate) struct MemberRow {
    pub start: MemberStart,
    pub end: MemberEnd,
}

/// Finds the frames of an archive. Each lookup may fail, because it may have to read a part of the
/// index first.
pub(crate) struct FrameIndex {
    rows: Index,
    /// The block numbers, after a scan; otherwise a block number is its position in the index.
    block_ids: Vec<u64>,
    /// Where the archive begins in the file. Rows state offsets in the archive, this interface
    /// states them in the file.
    archive_start: u64,
}

impl FrameIndex {
    /// An index that is in memory.
    pub(crate) fn of_rows(rows: Index, block_ids: Vec<u64>, archive_start: u64) -> FrameIndex {
        FrameIndex {
            rows,
            block_ids,
            archive_start,
        }
    }

    /// The block that holds the byte at this offset in the store, and its number.
    pub(crate) fn block_at(&self, offset_in_store: u64) -> Result<Option<(u64, IndexBlock)>> {
        let found = self.rows.block_at(offset_in_store).and_then(|number| {
            let id = self.block_ids.get(number).copied();
            let row = self.in_file(*self.rows.blocks.get(number)?);
            Some((id.unwrap_or(number as u64), row))
        });
        Ok(found)
    }

    /// The epoch that holds the byte at this offset in the content, and its number.
    pub(crate) fn epoch_at(&self, offset_in_content: u64) -> Result<Option<(u64, IndexEpoch)>> {
        let number = self.rows.epoch_at(offset_in_content);
        let row = number.and_then(|number| Some((number as u64, *self.rows.epochs.get(number)?)));
        Ok(row.map(|(number, mut row)| {
            row.frame_offset += self.archive_start;
            (number, row)
        }))
    }

    fn in_file(&self, mut row: IndexBlock) -> IndexBlock {
        row.frame_offset += self.archive_start;
        row
    }

    /// Calls `each` for every block, in the order of the store.
    pub(crate) fn for_each_block(
        &self,
        each: &mut dyn FnMut(&IndexBlock) -> Result<()>,
    ) -> Result<()> {
        let mut rows = self.rows.blocks.iter();
        rows.try_for_each(|row| each(&self.in_file(*row)))
    }

    /// Calls `each` for every epoch, in the order of content, with offsets in the archive.
    pub(crate) fn for_each_epoch(
        &self,
        each: &mut dyn FnMut(&IndexEpoch) -> Result<()>,
    ) -> Result<()> {
        self.rows.epochs.iter().try_for_each(each)
    }

    /// The number of members.
    pub(crate) fn member_count(&self) -> usize {
        self.rows.members.len()
    }

    /// The outline of member `number`.
    pub(crate) fn outline(&self, number: usize) -> Result<Option<MemberOutline>> {
        Ok(self.rows.members.get(number).map(|row| MemberOutline {
            kind: row.start.kind,
            content_start: row.start.content_start,
            content_bytes: row.end.content_bytes,
        }))
    }

    /// Member `number`.
    pub(crate) fn member(&self, number: usize) -> Result<Option<MemberRow>> {
        Ok(self.rows.members.get(number).map(|row| MemberRow {
            start: row.start.clone(),
            end: row.end.clone(),
        }))
    }

    /// The first member with this name, byte for byte.
    pub(crate) fn member_named(&self, name: &[u8]) -> Result<Option<usize>> {
        let mut members = self.rows.members.iter();
        Ok(members.position(|row| row.start.name == name))
    }

    /// Calls `each` for every member, in the archive's order.
    pub(crate) fn for_each_member(
        &self,
        each: &mut dyn FnMut(usize, &MemberStart, &MemberEnd) -> Result<()>,
    ) -> Result<()> {
        let mut members = self.rows.members.iter().enumerate();
        members.try_for_each(|(number, row)| each(number, &row.start, &row.end))
    }

    /// The number of Entries frames of member `number`.
    pub(crate) fn entries_frames(&self, number: usize) -> Result<usize> {
        let row = self.rows.members.get(number);
        Ok(row.map_or(0, |row| row.entries.len()))
    }

    /// Which Entries frames of a member may hold the entry with this path.
    pub(crate) fn frames_for_path(&self, number: usize, path: &[u8]) -> Result<Range<usize>> {
        let row = self.rows.members.get(number);
        Ok(row.map_or(0..0, |row| row.frames_for_path(path)))
    }

    /// An Entries frame of member `number`.
    pub(crate) fn entries_frame(&self, number: usize, frame: usize) -> Result<IndexEntries> {
        let row = self.rows.members.get(number);
        let found = row.and_then(|row| row.entries.get(frame)).cloned();
        let mut found =
            found.ok_or_else(|| Error::damaged("the index has no such frame of entries"))?;
        found.frame_offset += self.archive_start;
        Ok(found)
    }

    /// Calls `each` for every Entries frame, in the archive's order, with offsets in the archive.
    pub(crate) fn for_each_entries_frame(
        &self,
        each: &mut dyn FnMut(&IndexEntries) -> Result<()>,
    ) -> Result<()> {
        let mut rows = self.rows.members.iter().flat_map(|row| &row.entries);
        rows.try_for_each(each)
    }

    /// The sums over the archive.
    pub(crate) fn totals(&self) -> IndexTotals {
        self.rows.totals
    }
}
