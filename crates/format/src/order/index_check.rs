//! Compares the index with the frames before it, without retaining either.

use super::row_checksum::RowChecksum;
use super::slice_check::SliceCheck;
use crate::check::{check_equal, check_range};
use crate::constants::FrameKind;
use crate::error::{FormatError, Result};
use crate::index::{
    IndexBlock, IndexEntries, IndexEpoch, IndexList, IndexMember, IndexName, IndexNode, IndexSlice,
    NodeRows,
};
use crate::limits::INDEX_DEPTH_MAX;

/// Compares all lists of an index with the frames of its archive, in a few kilobytes of memory for
/// any number of rows.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexCheck {
    lists: [ListCheck; 6],
    slices: SliceCheck,
    /// Whether nodes are not compared with frames: those of a later generation have rows of earlier
    /// ones, too, and leave out most of these.
    is_off: bool,
}

impl IndexCheck {
    /// Compares nothing.
    pub(super) fn off() -> Self {
        Self {
            is_off: true,
            ..Self::default()
        }
    }

    pub(super) fn block(&mut self, row: &IndexBlock) {
        self.leaf_of(IndexList::Blocks).expected.add_block(row);
    }

    pub(super) fn epoch(&mut self, row: &IndexEpoch) {
        self.leaf_of(IndexList::Epochs).expected.add_epoch(row);
    }

    pub(super) fn entries(&mut self, row: &IndexEntries) {
        self.leaf_of(IndexList::Entries).expected.add_entries(row);
    }

    pub(super) fn member(&mut self, offsets: [u64; 2], checksums: [u64; 2], name: IndexName) {
        let leaf = self.leaf_of(IndexList::Members);
        leaf.expected.add_member(offsets, checksums);
        self.leaf_of(IndexList::Names).expected.add_unordered(name);
    }

    /// Adds a member whose frames of entries, from this number on, are not in path order.
    /// `fingerprint` is the sum of their fingerprints as whole slices.
    pub(super) fn sliced_member(&mut self, member_id: u64, first_frame: u64, fingerprint: u64) {
        self.slices.expect(member_id, first_frame, fingerprint);
    }

    pub(super) fn observe_slices(&mut self, member_id: u64, slices: &[IndexSlice]) {
        self.slices.observe(member_id, slices);
    }

    pub(super) fn check_observed_slices(&self) -> Result<()> {
        if self.is_off { Ok(()) } else { self.slices.check_observed() }
    }

    fn leaf_of(&mut self, list: IndexList) -> &mut Level {
        let [blocks, epochs, members, entries, names, slices] = &mut self.lists;
        let list = match list {
            IndexList::Blocks => blocks,
            IndexList::Epochs => epochs,
            IndexList::Members => members,
            IndexList::Entries => entries,
            IndexList::Names => names,
            IndexList::Slices => slices,
        };
        let [leaf, ..] = &mut list.levels;
        leaf
    }

    /// Takes the node in the Index frame at this location.
    pub(super) fn node(&mut self, node: &IndexNode, span: (u64, u64)) -> Result<()> {
        if node.depth >= INDEX_DEPTH_MAX {
            return Err(FormatError::Order {
                kind: FrameKind::Index,
                rule: "a node of the largest depth is a root, in the End frame",
            });
        }
        if self.is_off {
            return Ok(());
        }
        let Some(list) = self.lists.get_mut(node.list.position()) else {
            return Ok(());
        };
        list.take_node(node, span.0)?;
        if let NodeRows::Slices(rows) = &node.rows {
            self.slices.take(rows)?;
        }
        let above = usize::from(node.depth) + 1;
        if let (Some(level), Some(child)) = (list.levels.get_mut(above), node.as_child(span)) {
            level.expected.add_child(&child);
        }
        Ok(())
    }

    /// Takes the roots in the End frame, which begins at this offset. `lists_names`: whether there
    /// are enough members for a list of names.
    pub(super) fn roots(
        &mut self,
        roots: &[IndexNode],
        end_offset: u64,
        lists_names: bool,
    ) -> Result<()> {
        if self.is_off {
            return Ok(());
        }
        if !lists_names {
            self.leaf_of(IndexList::Names).expected = RowChecksum::default();
        }
        for root in roots {
            if let Some(list) = self.lists.get_mut(root.list.position()) {
                list.take_node(root, end_offset)?;
            }
            if let NodeRows::Slices(rows) = &root.rows {
                self.slices.take(rows)?;
            }
        }
        for (list, check) in IndexList::ALL.into_iter().zip(&self.lists) {
            check.finish(list)?;
        }
        self.slices.finish()
    }
}

#[derive(Debug, Clone, Default)]
struct ListCheck {
    levels: [Level; INDEX_DEPTH_MAX as usize + 1],
}

/// The nodes of one level of a list.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    expected: RowChecksum,
    found: RowChecksum,
    /// The number of leaf rows up to the end of the last node.
    next_row: u64,
    /// Where they end; see [`IndexNode::start`].
    end: [u64; 2],
    name: Option<IndexName>,
}

impl ListCheck {
    fn take_node(&mut self, node: &IndexNode, node_offset: u64) -> Result<()> {
        let Some(level) = self.levels.get_mut(usize::from(node.depth)) else {
            return Ok(());
        };
        check_equal(
            "first row of a node of the index",
            node.first_row,
            level.next_row,
        )?;
        for (found, expected) in node.start.into_iter().zip(level.end) {
            check_equal("start of a node of the index", found, expected)?;
        }
        level.add_rows(&node.rows, node_offset)?;
        level.next_row = node.next_row;
        let has_no_end = match node.list {
            IndexList::Names | IndexList::Slices => true,
            IndexList::Entries => node.depth > 0,
            IndexList::Blocks | IndexList::Epochs | IndexList::Members => false,
        };
        level.end = if has_no_end { [0, 0] } else { node.end };
        Ok(())
    }

    fn finish(&self, list: IndexList) -> Result<()> {
        for level in &self.levels {
            check_equal(list.name(), level.found.count(), level.expected.count())?;
            if level.found != level.expected {
                return Err(FormatError::Checksum {
                    what: "rows of the index, compared with the frames before it:",
                    found: level.found.value(),
                    expected: level.expected.value(),
                });
            }
        }
        Ok(())
    }
}

impl Level {
    fn add_rows(&mut self, rows: &NodeRows, node_offset: u64) -> Result<()> {
        match rows {
            NodeRows::Blocks(rows) => rows.iter().for_each(|row| self.found.add_block(row)),
            NodeRows::Epochs(rows) => rows.iter().for_each(|row| self.found.add_epoch(row)),
            NodeRows::Members(rows) => {
                rows.iter().try_for_each(|row| self.add_member(row))?;
            }
            NodeRows::Entries(rows) => rows.iter().for_each(|row| self.found.add_entries(row)),
            NodeRows::Names(rows) => {
                rows.iter().try_for_each(|row| self.add_name(*row))?;
            }
            // Which slices to expect is unknown until all have come.
            NodeRows::Slices(_) => {}
            NodeRows::Children(rows) => {
                for row in rows {
                    let end = check_range("end of a frame", row.frame_offset, row.frame_bytes)?;
                    if end > node_offset {
                        return Err(FormatError::Value {
                            what: "end of a node of the index",
                            value: end,
                            rule: "before the node whose row leads to it",
                        });
                    }
                    self.found.add_child(row);
                }
            }
        }
        Ok(())
    }

    fn add_member(&mut self, row: &IndexMember) -> Result<()> {
        let checksum = crate::frame::payload_checksum;
        let checksums = [
            checksum(&row.start.to_payload()?),
            checksum(&row.end.to_payload()?),
        ];
        let offsets = [row.start_frame_offset, row.end_frame_offset];
        self.found.add_member(offsets, checksums);
        Ok(())
    }

    fn add_name(&mut self, row: IndexName) -> Result<()> {
        row.check_follows(self.name)?;
        self.name = Some(row);
        self.found.add_unordered(row);
        Ok(())
    }
}
