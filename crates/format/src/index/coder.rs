//! Codes rows. What a row does not state follows from the node's earlier rows and from its head.

use super::list::IndexList;
use super::rows::{
    ChildNode, FrameSpan, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexName, IndexSlice,
    RowKey,
};
use crate::block_hash::BlockHash;
use crate::bytes::{ByteReader, add_difference, difference, put_varint, put_varints};
use crate::check::{check_equal, check_limit, check_positive, check_range, check_text};
use crate::constants::FRAME_HEADER_BYTES;
use crate::error::{FormatError, Result};
use crate::head::SplitPayload;
use crate::limits::{
    BLOCK_RAW_BYTES_MAX, ENTRIES_PER_FRAME_MAX, EPOCH_BYTES_MAX, FIRST_PATH_BYTES_MAX, FRAMES_MAX,
    MEMBERS_MAX,
};
use crate::member::{MemberEnd, MemberKind, MemberStart};

/// Set in the ids of a block's filters if the block's hash follows.
const HAS_HASH: u32 = 1 << 16;

/// The state between two rows: where the rows so far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowCoder {
    /// The number of leaf rows of the list so far.
    pub next_row: u64,
    /// Where the next row begins. Blocks: in the store, and 0. Epochs: in the content, and in the
    /// store. Members: in the content, and 0. Entries: the previous row's member, and its entries
    /// so far. Names and slices: zeros.
    pub start: [u64; 2],
    /// The end of the previous row's frame in this node.
    span_end: u64,
    /// The raw bytes of the previous block in this node.
    raw_bytes: u64,
    /// The offset of the previous row's MemberStart frame in this node.
    member_offset: u64,
    /// The previous name in this node.
    name: Option<IndexName>,
    /// The frame and the separator of the previous slice in this node.
    slice: (u64, Vec<u8>),
}

impl RowCoder {
    pub(super) fn new(first_row: u64, start: [u64; 2]) -> Self {
        Self {
            next_row: first_row,
            start,
            span_end: 0,
            raw_bytes: 0,
            member_offset: 0,
            name: None,
            slice: (0, Vec::new()),
        }
    }

    /// The same position as the state at the beginning of a node.
    pub(super) fn restarted(&self) -> Self {
        Self::new(self.next_row, self.start)
    }

    pub(super) fn take_block(&mut self, reader: &mut ByteReader<'_>) -> Result<IndexBlock> {
        let (frame_offset, frame_bytes) = self.take_span(reader)?;
        let raw_bytes = add_difference(self.raw_bytes, reader.varint()?);
        let codec = reader.varint_as("codec")?;
        let filters = reader.varint_as::<u32>("filters")?;
        check_limit("filters", u64::from(filters), u64::from(2 * HAS_HASH - 1))?;
        let [first, second, ..] = filters.to_le_bytes();
        let row = IndexBlock {
            frame_offset,
            frame_bytes,
            store_start: self.start[0],
            raw_bytes,
            codec,
            filter_ids: [first, second],
            hash: match filters & HAS_HASH {
                0 => None,
                _ => Some(BlockHash::take(reader)?),
            },
        };
        self.step_block(&row)?;
        Ok(row)
    }

    pub(super) fn put_block(&mut self, out: &mut Vec<u8>, row: &IndexBlock) -> Result<()> {
        self.put_span(out, (row.frame_offset, row.frame_bytes))?;
        let [first, second] = row.filter_ids;
        let filters = u32::from_le_bytes([first, second, u8::from(row.hash.is_some()), 0]);
        put_varint(out, difference(row.raw_bytes, self.raw_bytes));
        put_varints(out, &[u64::from(row.codec), u64::from(filters)]);
        out.extend(row.hash.iter().flat_map(BlockHash::bytes));
        self.step_block(row)
    }

    fn step_block(&mut self, row: &IndexBlock) -> Result<()> {
        check_in_range("raw bytes of a block", row.raw_bytes, BLOCK_RAW_BYTES_MAX)?;
        self.raw_bytes = row.raw_bytes;
        self.start[0] = check_range("end of the store", self.start[0], row.raw_bytes)?;
        self.next_row += 1;
        Ok(())
    }

    pub(super) fn take_epoch(&mut self, reader: &mut ByteReader<'_>) -> Result<IndexEpoch> {
        let (frame_offset, frame_bytes) = self.take_span(reader)?;
        let row = IndexEpoch {
            frame_offset,
            frame_bytes,
            content_start: self.start[0],
            content_bytes: reader.varint()?,
            store_start: self.start[1],
            fresh_bytes: reader.varint()?,
            extent_count: reader.varint()?,
        };
        self.step_epoch(&row)?;
        Ok(row)
    }

    pub(super) fn put_epoch(&mut self, out: &mut Vec<u8>, row: &IndexEpoch) -> Result<()> {
        self.put_span(out, (row.frame_offset, row.frame_bytes))?;
        put_varints(out, &[row.content_bytes, row.fresh_bytes, row.extent_count]);
        self.step_epoch(row)
    }

    fn step_epoch(&mut self, row: &IndexEpoch) -> Result<()> {
        check_in_range("epoch bytes", row.content_bytes, EPOCH_BYTES_MAX)?;
        self.start = [
            check_range("end of content", self.start[0], row.content_bytes)?,
            check_range("end of the store", self.start[1], row.fresh_bytes)?,
        ];
        self.next_row += 1;
        Ok(())
    }

    pub(super) fn take_member(&mut self, reader: &mut ByteReader<'_>) -> Result<IndexMember> {
        let start_frame_offset = add_difference(self.member_offset, reader.varint()?);
        let end_frame_offset = add_difference(start_frame_offset, reader.varint()?);
        let row = IndexMember {
            start_frame_offset,
            end_frame_offset,
            start: MemberStart::parse(take_head(reader)?)?,
            end: MemberEnd::parse(take_head(reader)?)?,
        };
        self.step_member(&row)?;
        Ok(row)
    }

    pub(super) fn put_member(&mut self, out: &mut Vec<u8>, row: &IndexMember) -> Result<()> {
        let (start, end) = (row.start_frame_offset, row.end_frame_offset);
        let offsets = [
            difference(start, self.member_offset),
            difference(end, start),
        ];
        put_varints(out, &offsets);
        out.extend(row.start.to_payload()?);
        out.extend(row.end.to_payload()?);
        self.step_member(row)
    }

    fn step_member(&mut self, row: &IndexMember) -> Result<()> {
        let facts = [
            ("member id", row.start.member_id, self.next_row),
            ("member id", row.end.member_id, self.next_row),
            ("start of a member", row.start.content_start, self.start[0]),
            (
                "hash of entries (1: present)",
                u64::from(row.end.entries_hash.is_some()),
                u64::from(row.start.kind.has_entries()),
            ),
            (
                "number of a layered tree's entries (1: stated)",
                u64::from(row.end.tree_entry_count.is_some()),
                u64::from(row.start.kind == MemberKind::LayeredTree),
            ),
        ];
        for (what, found, expected) in facts {
            check_equal(what, found, expected)?;
        }
        for offset in [row.start_frame_offset, row.end_frame_offset] {
            check_range("frame offset", offset, FRAME_HEADER_BYTES as u64)?;
        }
        self.member_offset = row.start_frame_offset;
        self.start[0] = check_range("end of a member", self.start[0], row.end.content_bytes)?;
        self.next_row += 1;
        Ok(())
    }

    pub(super) fn take_entries(&mut self, reader: &mut ByteReader<'_>) -> Result<IndexEntries> {
        let (frame_offset, frame_bytes) = self.take_span(reader)?;
        let [member_id, first_entry] = self.after_members(reader.varint()?)?;
        let row = IndexEntries {
            frame_offset,
            frame_bytes,
            member_id,
            first_entry,
            entry_count: reader.varint()?,
            packed_checksum: reader.u64()?,
            first_path: take_first_path(reader)?,
        };
        self.step_entries(&row)?;
        Ok(row)
    }

    pub(super) fn put_entries(&mut self, out: &mut Vec<u8>, row: &IndexEntries) -> Result<()> {
        self.put_span(out, (row.frame_offset, row.frame_bytes))?;
        let members = members_after(row.member_id, self.start[0])?;
        let [_, first_entry] = self.after_members(members)?;
        check_equal("first entry of a frame", row.first_entry, first_entry)?;
        put_varints(out, &[members, row.entry_count]);
        out.extend(row.packed_checksum.to_le_bytes());
        put_first_path(out, &row.first_path)?;
        self.step_entries(row)
    }

    fn step_entries(&mut self, row: &IndexEntries) -> Result<()> {
        check_positive("entries", row.entry_count)?;
        let end = check_range("entries of a member", row.first_entry, row.entry_count)?;
        self.start = [row.member_id, end];
        self.next_row += 1;
        Ok(())
    }

    /// Moves `members` after the member of the previous row. Returns that member and its entries so
    /// far.
    fn after_members(&self, members: u64) -> Result<[u64; 2]> {
        let member_id = self.start[0].saturating_add(members);
        check_limit("member id", member_id, MEMBERS_MAX)?;
        let first_entry = if members == 0 { self.start[1] } else { 0 };
        Ok([member_id, first_entry])
    }

    pub(super) fn take_name(&mut self, reader: &mut ByteReader<'_>) -> Result<IndexName> {
        let row = IndexName {
            checksum: reader.u64()?,
            member_id: reader.varint()?,
        };
        self.step_name(row)?;
        Ok(row)
    }

    pub(super) fn put_name(&mut self, out: &mut Vec<u8>, row: &IndexName) -> Result<()> {
        out.extend(row.checksum.to_le_bytes());
        put_varint(out, row.member_id);
        self.step_name(*row)
    }

    fn step_name(&mut self, row: IndexName) -> Result<()> {
        check_limit("member id", row.member_id, MEMBERS_MAX)?;
        row.check_follows(self.name)?;
        self.name = Some(row);
        self.next_row += 1;
        Ok(())
    }

    pub(super) fn take_slice(&mut self, reader: &mut ByteReader<'_>) -> Result<IndexSlice> {
        let (frame_before, before) = &self.slice;
        let frame = add_difference(*frame_before, reader.varint()?);
        let (first_entry, entry_count) = (reader.varint()?, reader.varint()?);
        let shared = reader.varint_as::<usize>("shared bytes of a path")?;
        let Some(shared_bytes) = before.get(..shared) else {
            return Err(FormatError::Value {
                what: "shared bytes of a path of a slice",
                value: shared as u64,
                rule: "at most the previous path",
            });
        };
        let mut separator = shared_bytes.to_vec();
        let own_bytes = reader.count(1)?;
        separator.extend_from_slice(reader.take(own_bytes)?);
        let row = IndexSlice {
            frame,
            first_entry,
            entry_count,
            separator,
        };
        // Each path has one encoding.
        check_equal(
            "shared bytes of a path of a slice",
            shared as u64,
            shared_bytes_of(before, &row.separator),
        )?;
        self.step_slice(&row)?;
        Ok(row)
    }

    /// Codes a slice. Neighbors mostly have neighboring frames and similar paths.
    pub(super) fn put_slice(&mut self, out: &mut Vec<u8>, row: &IndexSlice) -> Result<()> {
        let (frame_before, before) = &self.slice;
        let shared = shared_bytes_of(before, &row.separator);
        let own = row.separator.get(shared as usize..).unwrap_or_default();
        let numbers = [
            difference(row.frame, *frame_before),
            row.first_entry,
            row.entry_count,
            shared,
            own.len() as u64,
        ];
        put_varints(out, &numbers);
        out.extend_from_slice(own);
        self.step_slice(row)
    }

    fn step_slice(&mut self, row: &IndexSlice) -> Result<()> {
        check_limit("frame of entries", row.frame, FRAMES_MAX)?;
        check_in_range("entries of a slice", row.entry_count, ENTRIES_PER_FRAME_MAX)?;
        let end = row.first_entry.saturating_add(row.entry_count);
        check_limit("entries of a slice", end, ENTRIES_PER_FRAME_MAX)?;
        check_text("path of a slice", &row.separator, FIRST_PATH_BYTES_MAX)?;
        row.check_follows(&self.slice.1)?;
        self.slice = (row.frame, row.separator.clone());
        self.next_row += 1;
        Ok(())
    }

    pub(super) fn take_child(
        &mut self,
        list: IndexList,
        reader: &mut ByteReader<'_>,
    ) -> Result<ChildNode> {
        let (frame_offset, frame_bytes) = self.take_span(reader)?;
        let row_count = reader.varint()?;
        let mut end = self.start;
        let mut first = RowKey::Start(self.start);
        match list {
            IndexList::Blocks | IndexList::Members => {
                end[0] = end[0].saturating_add(reader.varint()?);
            }
            IndexList::Epochs => {
                end[0] = end[0].saturating_add(reader.varint()?);
                end[1] = end[1].saturating_add(reader.varint()?);
            }
            IndexList::Entries => {
                end = [0, 0];
                first = RowKey::Entries {
                    member_id: self.after_members(reader.varint()?)?[0],
                    first_entry: reader.varint()?,
                    first_path: take_first_path(reader)?,
                };
            }
            IndexList::Names => {
                end = [0, 0];
                first = RowKey::Name(reader.u64()?);
            }
            IndexList::Slices => {
                end = [0, 0];
                first = RowKey::Slice {
                    frame: reader.varint()?,
                    separator: take_first_path(reader)?,
                };
            }
        }
        let child = ChildNode {
            frame_offset,
            frame_bytes,
            first_row: self.next_row,
            row_count,
            first,
            end,
        };
        self.step_child(&child)?;
        Ok(child)
    }

    pub(super) fn put_child(
        &mut self,
        list: IndexList,
        out: &mut Vec<u8>,
        child: &ChildNode,
    ) -> Result<()> {
        self.put_span(out, (child.frame_offset, child.frame_bytes))?;
        put_varint(out, child.row_count);
        match &child.first {
            RowKey::Start(start) => {
                put_varint(out, child.end[0].saturating_sub(start[0]));
                if list == IndexList::Epochs {
                    put_varint(out, child.end[1].saturating_sub(start[1]));
                }
            }
            RowKey::Entries {
                member_id,
                first_entry,
                first_path,
            } => {
                put_varints(
                    out,
                    &[members_after(*member_id, self.start[0])?, *first_entry],
                );
                put_first_path(out, first_path)?;
            }
            RowKey::Name(checksum) => out.extend(checksum.to_le_bytes()),
            RowKey::Slice { frame, separator } => {
                put_varint(out, *frame);
                put_first_path(out, separator)?;
            }
        }
        self.step_child(child)
    }

    fn step_child(&mut self, child: &ChildNode) -> Result<()> {
        check_positive("rows under a node of the index", child.row_count)?;
        self.next_row = check_range(
            "rows of a list of the index",
            self.next_row,
            child.row_count,
        )?;
        self.start = match &child.first {
            RowKey::Start(_) => [
                check_range("end of a list of the index", child.end[0], 0)?,
                check_range("end of a list of the index", child.end[1], 0)?,
            ],
            RowKey::Entries { member_id, .. } => [*member_id, 0],
            RowKey::Name(_) | RowKey::Slice { .. } => [0, 0],
        };
        Ok(())
    }

    fn take_span(&mut self, reader: &mut ByteReader<'_>) -> Result<FrameSpan> {
        let gap = reader.varint()?;
        let offset = check_range("frame offset", self.span_end, gap)?;
        let bytes = reader.varint()?;
        self.step_span((offset, bytes))?;
        Ok((offset, bytes))
    }

    /// Codes a location as the gap from the previous one: the frames of a list are in file order,
    /// mostly close together.
    fn put_span(&mut self, out: &mut Vec<u8>, (offset, bytes): FrameSpan) -> Result<()> {
        let gap = offset
            .checked_sub(self.span_end)
            .ok_or(FormatError::Value {
                what: "frame offset in the index",
                value: offset,
                rule: "after the end of the previous frame",
            })?;
        put_varints(out, &[gap, bytes]);
        self.step_span((offset, bytes))
    }

    fn step_span(&mut self, (offset, bytes): FrameSpan) -> Result<()> {
        if bytes < FRAME_HEADER_BYTES as u64 {
            return Err(FormatError::Value {
                what: "frame bytes in the index",
                value: bytes,
                rule: "at least a frame header",
            });
        }
        self.span_end = check_range("end of a frame", offset, bytes)?;
        Ok(())
    }
}

fn members_after(member_id: u64, before: u64) -> Result<u64> {
    member_id.checked_sub(before).ok_or(FormatError::Value {
        what: "member id of a frame of entries",
        value: member_id,
        rule: "at least the previous frame's",
    })
}

/// Reads the head of a payload, with its size.
fn take_head<'a>(reader: &mut ByteReader<'a>) -> Result<&'a [u8]> {
    let head_bytes = SplitPayload::new(reader.rest())?.head.len();
    reader.take(head_bytes)
}

fn take_first_path(reader: &mut ByteReader<'_>) -> Result<Vec<u8>> {
    let length = usize::from(reader.u8()?);
    let path = reader.take(length)?;
    check_text("first path", path, FIRST_PATH_BYTES_MAX)?;
    Ok(path.to_vec())
}

fn put_first_path(out: &mut Vec<u8>, path: &[u8]) -> Result<()> {
    check_text("first path", path, FIRST_PATH_BYTES_MAX)?;
    out.push(path.len() as u8);
    out.extend_from_slice(path);
    Ok(())
}

fn shared_bytes_of(before: &[u8], path: &[u8]) -> u64 {
    before.iter().zip(path).take_while(|(a, b)| a == b).count() as u64
}

fn check_in_range(what: &'static str, value: u64, limit: u64) -> Result<()> {
    check_positive(what, value)?;
    check_limit(what, value, limit)
}
