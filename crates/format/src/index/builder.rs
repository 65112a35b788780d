//! Builds the index of an archive while its frames are written.

use std::sync::Arc;

use super::coder::RowCoder;
use super::list::IndexList;
use super::node::{EncodedNode, IndexNode, NodeRows};
use super::rows::{
    ChildNode, FrameSpan, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexName, IndexSlice,
};
use crate::error::Result;

/// The number of members above which the index lists names.
pub const NAMES_FROM: usize = 257;

/// The most bytes of rows in a node, unless a single row has more. A node is read and parsed as a
/// whole: larger ones make a lookup slower, smaller ones the index deeper.
pub const NODE_TARGET_BYTES: usize = 1 << 14;

/// The minimum number of rows of a node above the leaves, whatever their length: with fewer, long
/// paths would give the index more levels than readers accept.
const CHILDREN_MIN: u64 = 16;

/// Collects the rows of the index. Memory: the rows as they are written, about 8 bytes for each
/// block and each epoch.
#[derive(Debug, Clone)]
pub struct IndexBuilder {
    node_bytes: usize,
    blocks: ListBuilder,
    epochs: ListBuilder,
    members: ListBuilder,
    entries: ListBuilder,
    names: Vec<IndexName>,
    slices: ListBuilder,
}

impl Default for IndexBuilder {
    fn default() -> Self {
        Self::with_node_bytes(NODE_TARGET_BYTES)
    }
}

impl IndexBuilder {
    /// Creates an index whose nodes have at most this many bytes of rows.
    #[must_use]
    pub fn with_node_bytes(node_bytes: usize) -> Self {
        let leaves = |list| ListBuilder::new(list, node_bytes);
        Self {
            node_bytes,
            blocks: leaves(IndexList::Blocks),
            epochs: leaves(IndexList::Epochs),
            members: leaves(IndexList::Members),
            entries: leaves(IndexList::Entries),
            names: Vec::new(),
            slices: leaves(IndexList::Slices),
        }
    }

    /// Continues an index behind these right edges ( [`right_edge`](super::IndexTree::right_edge)),
    /// one for each list. Only nodes on them are written again; names are those of the new members
    /// alone.
    ///
    /// # Errors
    /// Rows that cannot be written as they were read.
    pub fn resume(edges: &[Vec<Arc<IndexNode>>]) -> Result<Self> {
        Self::resume_with(edges, NODE_TARGET_BYTES)
    }

    pub(super) fn resume_with(edges: &[Vec<Arc<IndexNode>>], node_bytes: usize) -> Result<Self> {
        let mut builder = Self::with_node_bytes(node_bytes);
        for edge in edges {
            let Some(list) = edge.first().map(|leaf| leaf.list) else {
                continue;
            };
            let resumed = match list {
                IndexList::Blocks => &mut builder.blocks,
                IndexList::Epochs => &mut builder.epochs,
                IndexList::Members => &mut builder.members,
                IndexList::Entries => &mut builder.entries,
                IndexList::Slices => &mut builder.slices,
                IndexList::Names => continue,
            };
            *resumed = ListBuilder::resume(edge, node_bytes)?;
        }
        Ok(builder)
    }

    /// Appends a block. Its start in the store follows from the earlier blocks.
    ///
    /// # Errors
    /// It is not after the previous block, or a value is out of range.
    pub fn push_block(&mut self, row: &IndexBlock) -> Result<()> {
        self.blocks
            .leaves
            .push(|coder, out| coder.put_block(out, row))
    }

    /// Drops the hashes of blocks, if all of them are in one node: an archive of a single frame has
    /// none.
    ///
    /// # Errors
    /// None: the rows were made here.
    pub(crate) fn drop_hashes(&mut self) -> Result<()> {
        let leaves = &mut self.blocks.leaves;
        if leaves.open.row_count == 0 || !leaves.closed.is_empty() {
            return Ok(());
        }
        let node = IndexNode::parse(&leaves.open.payload())?;
        if let Some(mut node) = node
            && let NodeRows::Blocks(rows) = &mut node.rows
        {
            rows.iter_mut().for_each(|row| row.hash = None);
            *leaves = LevelBuilder::resume(&node, self.node_bytes)?;
        }
        Ok(())
    }

    /// Appends an epoch. Its starts follow from the earlier epochs.
    ///
    /// # Errors
    /// As [`push_block`](Self::push_block).
    pub fn push_epoch(&mut self, row: &IndexEpoch) -> Result<()> {
        self.epochs
            .leaves
            .push(|coder, out| coder.put_epoch(out, row))
    }

    /// Appends a member.
    ///
    /// # Errors
    /// It is not after the previous member.
    pub fn push_member(&mut self, row: &IndexMember) -> Result<()> {
        self.members
            .leaves
            .push(|coder, out| coder.put_member(out, row))?;
        let name = IndexName::new(&row.start.name, row.start.member_id);
        self.names.push(name);
        Ok(())
    }

    /// Appends a frame of entries.
    ///
    /// # Errors
    /// It is not after the previous frame of entries.
    pub fn push_entries(&mut self, row: &IndexEntries) -> Result<()> {
        self.entries
            .leaves
            .push(|coder, out| coder.put_entries(out, row))
    }

    /// Appends a slice of a frame of entries.
    ///
    /// # Errors
    /// It is not after the previous slice, or a value is out of range.
    pub fn push_slice(&mut self, row: &IndexSlice) -> Result<()> {
        self.slices
            .leaves
            .push(|coder, out| coder.put_slice(out, row))
    }

    /// Ends the index. Calls `write` with the payload of each Index frame, in file order; `write`
    /// returns where it put the frame. Returns the data of the End frame: the roots.
    ///
    /// # Errors
    /// The errors of `write`; an index that is too deep.
    pub fn finish<E: From<crate::error::FormatError>>(
        mut self,
        write: &mut dyn FnMut(&[u8]) -> std::result::Result<FrameSpan, E>,
    ) -> std::result::Result<Vec<u8>, E> {
        let mut roots = Vec::new();
        let node_bytes = self.node_bytes;
        for leaves in [self.blocks, self.epochs, self.members, self.entries] {
            finish_list(leaves, node_bytes, &mut roots, write)?;
        }
        if self.names.len() >= NAMES_FROM {
            self.names.sort_unstable();
            let mut names = ListBuilder::new(IndexList::Names, node_bytes);
            for row in std::mem::take(&mut self.names) {
                names.leaves.push(|coder, out| coder.put_name(out, &row))?;
            }
            finish_list(names, node_bytes, &mut roots, write)?;
        }
        finish_list(self.slices, node_bytes, &mut roots, write)?;
        Ok(roots)
    }
}

fn finish_list<E: From<crate::error::FormatError>>(
    builder: ListBuilder,
    node_bytes: usize,
    roots: &mut Vec<u8>,
    write: &mut dyn FnMut(&[u8]) -> std::result::Result<FrameSpan, E>,
) -> std::result::Result<(), E> {
    let list = builder.leaves.open.list;
    let (mut level, mut resumed) = (builder.leaves, builder.above.into_iter());
    loop {
        let depth = level.open.depth + 1;
        let mut nodes = level.finish();
        let above = resumed.next();
        if nodes.len() <= 1 && above.is_none() {
            if let Some(root) = nodes.pop() {
                root.put_root(roots);
            }
            return Ok(());
        }
        let mut above = above.unwrap_or_else(|| LevelBuilder::new(list, depth, node_bytes));
        for node in nodes {
            let payload = node.payload();
            let span = write(&payload)?;
            above.push_child(list, &payload, span)?;
        }
        level = above;
    }
}

/// The nodes of one list.
#[derive(Debug, Clone)]
struct ListBuilder {
    leaves: LevelBuilder,
    /// The levels above that an earlier generation has, from the lowest to the root.
    above: Vec<LevelBuilder>,
}

impl ListBuilder {
    fn new(list: IndexList, node_bytes: usize) -> Self {
        Self {
            leaves: LevelBuilder::new(list, 0, node_bytes),
            above: Vec::new(),
        }
    }

    /// Continues behind an edge, from the last leaf to the root. A node above a leaf is continued
    /// without the row of the node on the edge below it, which will be another.
    fn resume(edge: &[Arc<IndexNode>], node_bytes: usize) -> Result<Self> {
        let mut levels = edge
            .iter()
            .map(|node| LevelBuilder::resume(node, node_bytes))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            leaves: levels.remove(0),
            above: levels,
        })
    }
}

#[derive(Debug, Clone)]
struct LevelBuilder {
    node_bytes: usize,
    closed: Vec<EncodedNode>,
    open: EncodedNode,
    coder: RowCoder,
}

impl LevelBuilder {
    fn new(list: IndexList, depth: u8, node_bytes: usize) -> Self {
        let coder = RowCoder::new(0, [0, 0]);
        Self {
            node_bytes,
            closed: Vec::new(),
            open: empty_node(list, depth, &coder),
            coder,
        }
    }

    fn resume(node: &IndexNode, node_bytes: usize) -> Result<Self> {
        let coder = RowCoder::new(node.first_row, node.start);
        let mut level = Self {
            node_bytes,
            closed: Vec::new(),
            open: empty_node(node.list, node.depth, &coder),
            coder,
        };
        match &node.rows {
            NodeRows::Blocks(rows) => level.push_all(rows, RowCoder::put_block)?,
            NodeRows::Epochs(rows) => level.push_all(rows, RowCoder::put_epoch)?,
            NodeRows::Members(rows) => level.push_all(rows, RowCoder::put_member)?,
            NodeRows::Entries(rows) => level.push_all(rows, RowCoder::put_entries)?,
            NodeRows::Names(rows) => level.push_all(rows, RowCoder::put_name)?,
            NodeRows::Slices(rows) => level.push_all(rows, RowCoder::put_slice)?,
            NodeRows::Children(rows) => {
                let rows = rows.split_last().map_or(&[][..], |(_, before)| before);
                let list = node.list;
                level.push_all(rows, |coder, out, row| coder.put_child(list, out, row))?;
            }
        }
        Ok(level)
    }

    fn push_all<T>(
        &mut self,
        rows: &[T],
        put: impl Fn(&mut RowCoder, &mut Vec<u8>, &T) -> Result<()>,
    ) -> Result<()> {
        rows.iter()
            .try_for_each(|row| self.push(|coder, out| put(coder, out, row)))
    }

    /// Appends the row that `put` writes, to a new node if it does not fit into the open one.
    fn push(&mut self, put: impl Fn(&mut RowCoder, &mut Vec<u8>) -> Result<()>) -> Result<()> {
        let before = self.open.rows.len();
        let mut coder = self.coder.clone();
        put(&mut coder, &mut self.open.rows)?;
        let rows_min = if self.open.depth == 0 { 1 } else { CHILDREN_MIN };
        if self.open.rows.len() > self.node_bytes && self.open.row_count >= rows_min {
            self.open.rows.truncate(before);
            self.open.rows.shrink_to_fit();
            coder = self.coder.restarted();
            let (list, depth) = (self.open.list, self.open.depth);
            // Nodes of entries count members from 0, whatever comes before.
            if depth > 0 && list == IndexList::Entries {
                coder.start = [0, 0];
            }
            let next = empty_node(list, depth, &coder);
            self.closed.push(std::mem::replace(&mut self.open, next));
            put(&mut coder, &mut self.open.rows)?;
        }
        self.coder = coder;
        self.open.row_count += 1;
        Ok(())
    }

    fn push_child(&mut self, list: IndexList, payload: &[u8], span: FrameSpan) -> Result<()> {
        let node = IndexNode::parse(payload)?;
        let Some(child) = node.and_then(|node| node.as_child(span)) else {
            return Ok(());
        };
        let child: &ChildNode = &child;
        self.push(|coder, out| coder.put_child(list, out, child))
    }

    fn finish(mut self) -> Vec<EncodedNode> {
        if self.open.row_count > 0 {
            self.closed.push(self.open);
        }
        self.closed
    }
}

fn empty_node(list: IndexList, depth: u8, coder: &RowCoder) -> EncodedNode {
    EncodedNode {
        list,
        depth,
        row_count: 0,
        first_row: coder.next_row,
        start: coder.start,
        rows: Vec::new(),
    }
}
