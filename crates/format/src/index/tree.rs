//! Finds rows in an index of which only the roots are in memory.

use std::ops::Range;
use std::sync::Arc;

use super::list::IndexList;
use super::node::{IndexNode, NodeRows};
use super::path_search::{frames_before, may_hold};
use super::rows::{
    ChildNode, FrameSpan, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexName, IndexSlice,
    RowKey,
};
use super::slice_search;
use crate::error::FormatError;

/// Reads the nodes of an index.
pub trait NodeSource {
    /// Why a node cannot be read.
    type Error: From<FormatError>;

    /// Returns the node at this location. `is_lookup`: the node is likely to be needed again;
    /// otherwise all nodes are being read in order.
    ///
    /// # Errors
    /// The frame cannot be read, or is not a node of the index.
    fn node(&self, span: FrameSpan, is_lookup: bool) -> Result<Arc<IndexNode>, Self::Error>;
}

/// An index. A lookup reads at most one node per level of a list (at most
/// [`INDEX_DEPTH_MAX`](crate::limits::INDEX_DEPTH_MAX)), and compares each node with the row that
/// led to it, so no bytes can make it loop.
#[derive(Debug)]
pub struct IndexTree<S> {
    roots: [Option<Arc<IndexNode>>; 6],
    source: S,
}

impl<S: NodeSource> IndexTree<S> {
    /// Creates an index with these roots, which are in the End frame.
    #[must_use]
    pub fn new(roots: Vec<IndexNode>, source: S) -> Self {
        let mut tree = Self {
            roots: Default::default(),
            source,
        };
        for root in roots {
            if let Some(slot) = tree.roots.get_mut(root.list.position()) {
                *slot = Some(Arc::new(root));
            }
        }
        tree
    }

    #[cfg(any(test, feature = "property"))]
    pub(super) fn into_source(self) -> S {
        self.source
    }

    /// The same roots with the nodes of another index.
    #[cfg(test)]
    pub(super) fn with_source_of(self, other: Self) -> Self {
        Self {
            source: other.source,
            ..self
        }
    }

    /// The number of rows of a list.
    #[must_use]
    pub fn row_count(&self, list: IndexList) -> u64 {
        self.root(list).map_or(0, |root| root.next_row)
    }

    /// Where the rows of a list end in its spaces; see [`IndexNode::start`].
    #[must_use]
    pub fn end_of(&self, list: IndexList) -> [u64; 2] {
        self.root(list).map_or([0, 0], |root| root.end)
    }

    /// The block that holds this offset in the store, and its id.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn block_at(&self, offset_in_store: u64) -> Result<Option<(u64, IndexBlock)>, S::Error> {
        let Some(leaf) = self.leaf_at_start(IndexList::Blocks, offset_in_store)? else {
            return Ok(None);
        };
        let NodeRows::Blocks(rows) = &leaf.rows else {
            return Ok(None);
        };
        let after = rows.partition_point(|row| row.store_start <= offset_in_store);
        let found = after
            .checked_sub(1)
            .and_then(|at| Some((at, rows.get(at)?)));
        let found = found.filter(|(_, row)| offset_in_store - row.store_start < row.raw_bytes);
        Ok(found.map(|(at, row)| (leaf.first_row + at as u64, *row)))
    }

    /// The epoch that holds this offset in the content space, and its id.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn epoch_at(&self, offset_in_content: u64) -> Result<Option<(u64, IndexEpoch)>, S::Error> {
        let Some(leaf) = self.leaf_at_start(IndexList::Epochs, offset_in_content)? else {
            return Ok(None);
        };
        let NodeRows::Epochs(rows) = &leaf.rows else {
            return Ok(None);
        };
        let after = rows.partition_point(|row| row.content_start <= offset_in_content);
        let found = after
            .checked_sub(1)
            .and_then(|at| Some((at, rows.get(at)?)));
        let found =
            found.filter(|(_, row)| offset_in_content - row.content_start < row.content_bytes);
        Ok(found.map(|(at, row)| (leaf.first_row + at as u64, *row)))
    }

    /// A member by its id.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn member(&self, id: u64) -> Result<Option<IndexMember>, S::Error> {
        self.with_row(IndexList::Members, id, |rows, at| match rows {
            NodeRows::Members(rows) => rows.get(at).cloned(),
            _ => None,
        })
    }

    /// The id of the first member with this name, byte for byte.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn member_named(&self, name: &[u8]) -> Result<Option<u64>, S::Error> {
        if self.row_count(IndexList::Names) == 0 {
            return self.member_named_by_reading_all(name);
        }
        let checksum = IndexName::new(name, 0).checksum;
        let mut number = self.first_name_from(checksum)?;
        while let Some(row) = self.name(number)?.filter(|row| row.checksum == checksum) {
            let member = self.member(row.member_id)?;
            if member.is_some_and(|member| member.start.name == name) {
                return Ok(Some(row.member_id));
            }
            number += 1;
        }
        Ok(None)
    }

    fn member_named_by_reading_all(&self, name: &[u8]) -> Result<Option<u64>, S::Error> {
        let mut found = None;
        self.for_each_leaf(IndexList::Members, &mut |leaf| {
            if let (NodeRows::Members(rows), None) = (&leaf.rows, found) {
                let at = rows.iter().position(|row| row.start.name == name);
                found = at.map(|at| leaf.first_row + at as u64);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The number of the first name whose checksum is not below this one.
    fn first_name_from(&self, checksum: u64) -> Result<u64, S::Error> {
        let leaf = self.leaf(IndexList::Names, |rows| {
            let is_before = |row: &ChildNode| match row.first {
                RowKey::Name(first) => first < checksum,
                RowKey::Start(_) | RowKey::Entries { .. } | RowKey::Slice { .. } => false,
            };
            // Rows with this checksum may begin in the node before the first that begins with
            // it.
            rows.partition_point(is_before).saturating_sub(1)
        })?;
        Ok(leaf.map_or(0, |leaf| match &leaf.rows {
            NodeRows::Names(rows) => {
                let at = rows.partition_point(|row| row.checksum < checksum);
                leaf.first_row + at as u64
            }
            _ => leaf.next_row,
        }))
    }

    fn name(&self, number: u64) -> Result<Option<IndexName>, S::Error> {
        self.with_row(IndexList::Names, number, |rows, at| match rows {
            NodeRows::Names(rows) => rows.get(at).copied(),
            _ => None,
        })
    }

    /// A row of the list of frames of entries.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn entries(&self, number: u64) -> Result<Option<IndexEntries>, S::Error> {
        self.with_row(IndexList::Entries, number, |rows, at| match rows {
            NodeRows::Entries(rows) => rows.get(at).cloned(),
            _ => None,
        })
    }

    /// The numbers of a member's frames of entries.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn entries_of_member(&self, id: u64) -> Result<Range<u64>, S::Error> {
        let start = self.first_entries_from(id)?;
        Ok(start..self.first_entries_from(id.saturating_add(1))?.max(start))
    }

    /// The number of the first frame of entries of this or a later member.
    fn first_entries_from(&self, id: u64) -> Result<u64, S::Error> {
        let leaf = self.leaf(IndexList::Entries, |rows| {
            let is_before = |row: &ChildNode| match &row.first {
                RowKey::Entries { member_id, .. } => *member_id < id,
                RowKey::Start(_) | RowKey::Name(_) | RowKey::Slice { .. } => false,
            };
            rows.partition_point(is_before).saturating_sub(1)
        })?;
        Ok(leaf.map_or(0, |leaf| match &leaf.rows {
            NodeRows::Entries(rows) => {
                let at = rows.partition_point(|row| row.member_id < id);
                leaf.first_row + at as u64
            }
            _ => leaf.next_row,
        }))
    }

    /// Returns the frames of entries of a member with sorted entries that may hold this path: at
    /// most one, unless paths are very long.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn frames_for_path(&self, id: u64, path: &[u8]) -> Result<Range<u64>, S::Error> {
        let last = match self.root(IndexList::Entries) {
            Some(root) => last_row_for_path(self, root, id, path)?,
            None => None,
        };
        let Some(last) = last else {
            return Ok(0..0);
        };
        let first = self.first_entries_from(id)?;
        let start = frames_before(first..last + 1, path, &mut |number| self.entries(number))?;
        Ok(start..last + 1)
    }

    /// A row of the list of slices.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn slice(&self, number: u64) -> Result<Option<IndexSlice>, S::Error> {
        self.with_row(IndexList::Slices, number, |rows, at| match rows {
            NodeRows::Slices(rows) => rows.get(at).cloned(),
            _ => None,
        })
    }

    /// The numbers of the slices of a member with these frames of entries.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn slices_of_frames(&self, frames: &Range<u64>) -> Result<Range<u64>, S::Error> {
        let start = self.first_slice_from(frames.start)?;
        Ok(start..self.first_slice_from(frames.end)?.max(start))
    }

    /// The number of the first slice of a member whose frames are not before this one.
    fn first_slice_from(&self, frame: u64) -> Result<u64, S::Error> {
        let leaf = self.leaf(IndexList::Slices, |rows| {
            let is_before = |row: &ChildNode| match &row.first {
                RowKey::Slice { frame: first, .. } => *first < frame,
                RowKey::Start(_) | RowKey::Entries { .. } | RowKey::Name(_) => false,
            };
            rows.partition_point(is_before).saturating_sub(1)
        })?;
        Ok(leaf.map_or(0, |leaf| match &leaf.rows {
            NodeRows::Slices(rows) => {
                let at = rows.partition_point(|row| row.frame < frame);
                leaf.first_row + at as u64
            }
            _ => leaf.next_row,
        }))
    }

    /// Returns the slices of a member with these frames of entries that may hold this path: at most
    /// one, unless paths are very long.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn slices_for_path(
        &self,
        frames: &Range<u64>,
        path: &[u8],
    ) -> Result<Range<u64>, S::Error> {
        let leaf = self.leaf(IndexList::Slices, |rows| {
            let is_before = |row: &ChildNode| slice_search::begins_before(row, frames, path);
            rows.partition_point(is_before).saturating_sub(1)
        })?;
        let last = leaf.and_then(|leaf| match &leaf.rows {
            NodeRows::Slices(rows) => {
                let may_hold = |row: &IndexSlice| slice_search::may_hold(row, frames, path);
                let at = rows.iter().rposition(may_hold)?;
                Some(leaf.first_row + at as u64)
            }
            _ => None,
        });
        let Some(last) = last else {
            return Ok(0..0);
        };
        let first = self.first_slice_from(frames.start)?;
        let mut row = |number| self.slice(number);
        let start = slice_search::first_row_for_path(first..last + 1, path, &mut row)?;
        Ok(start..last + 1)
    }

    /// Calls `each` for every leaf of a list, in order.
    ///
    /// # Errors
    /// A node cannot be read, or `each` fails.
    pub fn for_each_leaf(
        &self,
        list: IndexList,
        each: &mut dyn FnMut(&IndexNode) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        match self.root(list) {
            Some(root) => self.for_each_leaf_under(root, each),
            None => Ok(()),
        }
    }

    fn for_each_leaf_under(
        &self,
        node: &IndexNode,
        each: &mut dyn FnMut(&IndexNode) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        let NodeRows::Children(rows) = &node.rows else {
            return each(node);
        };
        for row in rows {
            let child = self.child(node, row, false)?;
            self.for_each_leaf_under(&child, each)?;
        }
        Ok(())
    }

    /// The nodes on the right edge of a list, from its last leaf to its root; none if it has no
    /// rows. A later generation continues there.
    ///
    /// # Errors
    /// A node cannot be read.
    pub fn right_edge(&self, list: IndexList) -> Result<Vec<Arc<IndexNode>>, S::Error> {
        let mut edge: Vec<_> = self.root(list).cloned().into_iter().collect();
        while let Some(node) = edge.last()
            && let NodeRows::Children(rows) = &node.rows
            && let Some(row) = rows.last()
        {
            let child = self.child(node, row, false)?;
            edge.push(child);
        }
        edge.reverse();
        Ok(edge)
    }

    fn root(&self, list: IndexList) -> Option<&Arc<IndexNode>> {
        self.roots.get(list.position())?.as_ref()
    }

    pub(super) fn child(
        &self,
        parent: &IndexNode,
        row: &ChildNode,
        is_lookup: bool,
    ) -> Result<Arc<IndexNode>, S::Error> {
        let span = (row.frame_offset, row.frame_bytes);
        let node = self.source.node(span, is_lookup)?;
        node.check_child(parent.list, parent.depth, row)?;
        Ok(node)
    }

    /// Descends to a leaf; `choose` returns the position of the next node.
    fn leaf(
        &self,
        list: IndexList,
        choose: impl Fn(&[ChildNode]) -> usize,
    ) -> Result<Option<Arc<IndexNode>>, S::Error> {
        let Some(mut node) = self.root(list).cloned() else {
            return Ok(None);
        };
        while let NodeRows::Children(rows) = &node.rows {
            let Some(row) = rows.get(choose(rows)) else {
                return Ok(None);
            };
            node = self.child(&node, row, true)?;
        }
        Ok(Some(node))
    }

    fn leaf_at_start(
        &self,
        list: IndexList,
        address: u64,
    ) -> Result<Option<Arc<IndexNode>>, S::Error> {
        self.leaf(list, |rows| {
            let begins_before = |row: &ChildNode| match row.first {
                RowKey::Start(start) => start[0] <= address,
                RowKey::Entries { .. } | RowKey::Name(_) | RowKey::Slice { .. } => false,
            };
            rows.partition_point(begins_before).saturating_sub(1)
        })
    }

    /// Returns what `take` makes of the leaf's rows and the position of row number `number`.
    fn with_row<T>(
        &self,
        list: IndexList,
        number: u64,
        take: impl Fn(&NodeRows, usize) -> Option<T>,
    ) -> Result<Option<T>, S::Error> {
        let leaf = self.leaf(list, |rows| {
            let begins_before = |row: &ChildNode| row.first_row <= number;
            rows.partition_point(begins_before).saturating_sub(1)
        })?;
        Ok(leaf.and_then(|leaf| {
            let at = number.checked_sub(leaf.first_row)?;
            take(&leaf.rows, usize::try_from(at).ok()?)
        }))
    }
}

/// Where the first row under a node is, relative to a path in a member.
enum Position {
    /// In an earlier member: rows of the member may follow in the node.
    EarlierMember,
    /// In the member, without a path.
    Unknown,
    /// In the member, at or before the path.
    Before,
    /// Above the path, or in a later member.
    After,
}

impl Position {
    fn relative_to(child: &ChildNode, member: u64, path: &[u8]) -> Self {
        let RowKey::Entries {
            member_id,
            first_path,
            ..
        } = &child.first
        else {
            return Self::After;
        };
        match member_id.cmp(&member) {
            std::cmp::Ordering::Less => Self::EarlierMember,
            std::cmp::Ordering::Greater => Self::After,
            std::cmp::Ordering::Equal if first_path.is_empty() => Self::Unknown,
            std::cmp::Ordering::Equal if may_hold(first_path, path) => Self::Before,
            std::cmp::Ordering::Equal => Self::After,
        }
    }
}

/// The number of the last row of a member whose frame may hold `path`.
///
/// The rows of a member that have a path are sorted, so the search goes back from the first node
/// that begins above the path. It enters several nodes of a level only where nodes begin with rows
/// without a path.
fn last_row_for_path<S: NodeSource>(
    tree: &IndexTree<S>,
    node: &IndexNode,
    member: u64,
    path: &[u8],
) -> Result<Option<u64>, S::Error> {
    debug_assert_eq!(node.list, IndexList::Entries);
    let children = match &node.rows {
        NodeRows::Children(children) => children,
        NodeRows::Entries(rows) => {
            let holds =
                |row: &IndexEntries| row.member_id == member && may_hold(&row.first_path, path);
            let at = rows.iter().rposition(holds);
            return Ok(at.map(|at| node.first_row + at as u64));
        }
        _ => return Ok(None),
    };
    for child in children.iter().rev() {
        let position = Position::relative_to(child, member, path);
        if matches!(position, Position::After) {
            continue;
        }
        let below = tree.child(node, child, true)?;
        let found = last_row_for_path(tree, &below, member, path)?;
        if found.is_some() || matches!(position, Position::Before | Position::EarlierMember) {
            return Ok(found);
        }
    }
    Ok(None)
}
