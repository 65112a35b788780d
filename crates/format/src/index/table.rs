//! An index that is in memory as a whole: what a scan builds from the frames it finds, and the slow
//! twin of [`IndexTree`].

use std::ops::Range;

use super::list::IndexList;
use super::node::{IndexNode, NodeRows};
use super::path_search::{frames_before, may_hold};
use super::rows::{IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexSlice};
use super::slice_search;
use super::tree::{IndexTree, NodeSource};

/// All rows of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// All blocks, in store order.
    pub blocks: Vec<IndexBlock>,
    /// All epochs, in content order.
    pub epochs: Vec<IndexEpoch>,
    /// All members, in content order.
    pub members: Vec<IndexMember>,
    /// All frames of entries, in the order of their members.
    pub entries: Vec<IndexEntries>,
    /// The slices, in path order, of frames of entries in members whose frames are not.
    pub slices: Vec<IndexSlice>,
}

impl Index {
    /// Reads all rows.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn read<S: NodeSource>(tree: &IndexTree<S>) -> Result<Self, S::Error> {
        let mut index = Self::default();
        for list in IndexList::ALL {
            tree.for_each_leaf(list, &mut |leaf| {
                index.extend(leaf);
                Ok(())
            })?;
        }
        Ok(index)
    }

    fn extend(&mut self, leaf: &IndexNode) {
        match &leaf.rows {
            NodeRows::Blocks(rows) => self.blocks.extend_from_slice(rows),
            NodeRows::Epochs(rows) => self.epochs.extend_from_slice(rows),
            NodeRows::Members(rows) => self.members.extend_from_slice(rows),
            NodeRows::Entries(rows) => self.entries.extend_from_slice(rows),
            NodeRows::Slices(rows) => self.slices.extend_from_slice(rows),
            NodeRows::Names(_) | NodeRows::Children(_) => {}
        }
    }

    /// Returns the position of the block that holds the byte at `offset_in_store`.
    #[must_use]
    pub fn block_at(&self, offset_in_store: u64) -> Option<usize> {
        let after = self
            .blocks
            .partition_point(|block| block.store_start <= offset_in_store);
        let at = after.checked_sub(1)?;
        let block = self.blocks.get(at)?;
        (offset_in_store - block.store_start < block.raw_bytes).then_some(at)
    }

    /// Returns the position of the epoch that holds the byte at `offset_in_content` of the content
    /// space.
    #[must_use]
    pub fn epoch_at(&self, offset_in_content: u64) -> Option<usize> {
        let after = self
            .epochs
            .partition_point(|epoch| epoch.content_start <= offset_in_content);
        let at = after.checked_sub(1)?;
        let epoch = self.epochs.get(at)?;
        (offset_in_content - epoch.content_start < epoch.content_bytes).then_some(at)
    }

    /// Returns the positions of the frames of entries of a member.
    #[must_use]
    pub fn entries_of_member(&self, id: u64) -> Range<u64> {
        let start = self.entries.partition_point(|row| row.member_id < id);
        let end = self.entries.partition_point(|row| row.member_id <= id);
        start as u64..end as u64
    }

    /// Returns the frames of entries of a member with sorted entries that may hold this path: at
    /// most one, unless paths are very long.
    #[must_use]
    pub fn frames_for_path(&self, id: u64, path: &[u8]) -> Range<u64> {
        let rows = self.entries_of_member(id);
        let row = |number: u64| self.entries.get(usize::try_from(number).ok()?);
        let holds = |number: &u64| row(*number).is_some_and(|row| may_hold(&row.first_path, path));
        let Some(last) = rows.clone().rev().find(holds) else {
            return 0..0;
        };
        let mut read = |number| Ok::<_, std::convert::Infallible>(row(number).cloned());
        match frames_before(rows.start..last + 1, path, &mut read) {
            Ok(start) => start..last + 1,
            Err(never) => match never {},
        }
    }

    /// Returns the positions of the slices of a member with these frames of entries.
    #[must_use]
    pub fn slices_of_frames(&self, frames: &Range<u64>) -> Range<u64> {
        let at = |frame: u64| self.slices.partition_point(|row| row.frame < frame) as u64;
        at(frames.start)..at(frames.end)
    }

    /// Returns the slices of a member with these frames of entries that may hold this path.
    #[must_use]
    pub fn slices_for_path(&self, frames: &Range<u64>, path: &[u8]) -> Range<u64> {
        let rows = self.slices_of_frames(frames);
        let row = |number: u64| self.slices.get(usize::try_from(number).ok()?);
        let holds = |number: &u64| {
            row(*number).is_some_and(|row| slice_search::may_hold(row, frames, path))
        };
        let Some(last) = rows.clone().rev().find(holds) else {
            return 0..0;
        };
        let mut read = |number| Ok::<_, std::convert::Infallible>(row(number).cloned());
        match slice_search::first_row_for_path(rows.start..last + 1, path, &mut read) {
            Ok(start) => start..last + 1,
            Err(never) => match never {},
        }
    }
}
