//! Nodes of the index: the payloads of Index frames, and the roots in the End frame.

use super::coder::RowCoder;
use super::list::IndexList;
use super::rows::{
    ChildNode, FrameSpan, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexName, IndexSlice,
    RowKey,
};
use crate::bytes::{ByteReader, put_varints};
use crate::check::{check_equal, check_limit, check_positive, check_range};
use crate::error::{FormatError, Result};
use crate::head::{SplitPayload, head_of, take_extensions};
use crate::limits::{INDEX_BYTES_MAX, INDEX_DEPTH_MAX};

/// The smallest size of a row, which is a location.
const ROW_BYTES_MIN: usize = 2;

/// A node of the index: rows of one list, or the nodes that hold them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexNode {
    /// The list.
    pub list: IndexList,
    /// The number of levels below it: 0 for a leaf.
    pub depth: u8,
    /// The number of leaf rows of the list before this node.
    pub first_row: u64,
    /// Where the rows before it end. Blocks: in the store, and 0. Epochs: in the content, and in
    /// the store. Members: in the content, and 0. Leaves of entries: the previous row's member, and
    /// its entries so far. Otherwise zeros.
    pub start: [u64; 2],
    /// The rows.
    pub rows: NodeRows,
    /// The number of leaf rows of the list up to the end of this node.
    pub next_row: u64,
    /// Where its rows end, in the same terms as `start`.
    pub end: [u64; 2],
}

/// The rows of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRows {
    /// Blocks.
    Blocks(Vec<IndexBlock>),
    /// Epochs.
    Epochs(Vec<IndexEpoch>),
    /// Members.
    Members(Vec<IndexMember>),
    /// Frames of entries.
    Entries(Vec<IndexEntries>),
    /// Names.
    Names(Vec<IndexName>),
    /// Slices of frames of entries.
    Slices(Vec<IndexSlice>),
    /// Nodes one level below.
    Children(Vec<ChildNode>),
}

impl NodeRows {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Blocks(rows) => rows.len(),
            Self::Epochs(rows) => rows.len(),
            Self::Members(rows) => rows.len(),
            Self::Entries(rows) => rows.len(),
            Self::Names(rows) => rows.len(),
            Self::Slices(rows) => rows.len(),
            Self::Children(rows) => rows.len(),
        }
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The fields of a node other than its rows.
#[derive(Debug, Clone, Copy)]
struct NodeShape {
    list: IndexList,
    depth: u8,
    row_count: u64,
    first_row: u64,
    start: [u64; 2],
}

impl IndexNode {
    /// Parses the payload of an Index frame. `None` for a list of a later version that readers
    /// ignore.
    ///
    /// # Errors
    /// A list that a reader must know; counts that the payload cannot hold; values out of their
    /// range; bytes at the end.
    pub fn parse(payload: &[u8]) -> Result<Option<Self>> {
        let split = SplitPayload::new(payload)?;
        let mut fields = split.fields("index");
        let Some(list) = IndexList::from_id(fields.varint()?)? else {
            return Ok(None);
        };
        let shape = NodeShape {
            list,
            depth: take_depth(&mut fields)?,
            row_count: fields.varint()?,
            first_row: fields.varint()?,
            start: [fields.varint()?, fields.varint()?],
        };
        take_extensions(fields)?;
        Self::parse_rows(shape, split.data).map(Some)
    }

    fn parse_rows(shape: NodeShape, data: &[u8]) -> Result<Self> {
        check_limit(
            "bytes of a node of the index",
            data.len() as u64,
            INDEX_BYTES_MAX,
        )?;
        check_positive("rows of a node of the index", shape.row_count)?;
        check_range("rows of a list of the index", shape.first_row, 0)?;
        for start in shape.start {
            check_range("start of a node of the index", start, 0)?;
        }
        let mut coder = RowCoder::new(shape.first_row, shape.start);
        let mut reader = ByteReader::new("node of the index", data);
        let list = shape.list;
        let (count, rows) = (shape.row_count, &mut reader);
        let rows = match (shape.depth, list) {
            (0, IndexList::Blocks) => {
                NodeRows::Blocks(take_rows(count, rows, |rows| coder.take_block(rows))?)
            }
            (0, IndexList::Epochs) => {
                NodeRows::Epochs(take_rows(count, rows, |rows| coder.take_epoch(rows))?)
            }
            (0, IndexList::Members) => {
                NodeRows::Members(take_rows(count, rows, |rows| coder.take_member(rows))?)
            }
            (0, IndexList::Entries) => {
                NodeRows::Entries(take_rows(count, rows, |rows| coder.take_entries(rows))?)
            }
            (0, IndexList::Names) => {
                NodeRows::Names(take_rows(count, rows, |rows| coder.take_name(rows))?)
            }
            (0, IndexList::Slices) => {
                NodeRows::Slices(take_rows(count, rows, |rows| coder.take_slice(rows))?)
            }
            (_, list) => {
                NodeRows::Children(take_rows(count, rows, |rows| coder.take_child(list, rows))?)
            }
        };
        reader.finish()?;
        Ok(Self {
            list,
            depth: shape.depth,
            first_row: shape.first_row,
            start: shape.start,
            rows,
            next_row: coder.next_row,
            end: coder.start,
        })
    }

    /// The row of this node in its parent. `None` if it has no rows.
    #[must_use]
    pub fn as_child(&self, (frame_offset, frame_bytes): FrameSpan) -> Option<ChildNode> {
        let first = match &self.rows {
            NodeRows::Blocks(_) | NodeRows::Epochs(_) | NodeRows::Members(_) => {
                RowKey::Start(self.start)
            }
            NodeRows::Entries(rows) => {
                let row = rows.first()?;
                RowKey::Entries {
                    member_id: row.member_id,
                    first_entry: row.first_entry,
                    first_path: row.first_path.clone(),
                }
            }
            NodeRows::Names(rows) => RowKey::Name(rows.first()?.checksum),
            NodeRows::Slices(rows) => {
                let row = rows.first()?;
                RowKey::Slice {
                    frame: row.frame,
                    separator: row.separator.clone(),
                }
            }
            NodeRows::Children(rows) => rows.first()?.first.clone(),
        };
        let end = match first {
            RowKey::Start(_) => self.end,
            RowKey::Entries { .. } | RowKey::Name(_) | RowKey::Slice { .. } => [0, 0],
        };
        Some(ChildNode {
            frame_offset,
            frame_bytes,
            first_row: self.first_row,
            row_count: self.next_row - self.first_row,
            first,
            end,
        })
    }

    /// Compares this node with its row in a node of `list` and `depth`.
    ///
    /// # Errors
    /// The first difference.
    pub fn check_child(&self, list: IndexList, depth: u8, row: &ChildNode) -> Result<()> {
        let facts = [
            ("list of a node of the index", self.list.id(), list.id()),
            (
                "depth of a node of the index, plus 1",
                u64::from(self.depth) + 1,
                u64::from(depth),
            ),
            (
                "first row of a node of the index",
                self.first_row,
                row.first_row,
            ),
            (
                "rows under a node of the index",
                self.next_row.saturating_sub(self.first_row),
                row.row_count,
            ),
        ];
        for (what, found, expected) in facts {
            check_equal(what, found, expected)?;
        }
        let Some(found) = self.as_child((row.frame_offset, row.frame_bytes)) else {
            return check_positive("rows of a node of the index", 0);
        };
        row.first.check(&found.first)?;
        for (found, expected) in found.end.into_iter().zip(row.end) {
            check_equal("end of a node of the index", found, expected)?;
        }
        Ok(())
    }

    /// The node's memory in bytes, estimated.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let variable = match &self.rows {
            NodeRows::Blocks(rows) => size_of_val(rows.as_slice()),
            NodeRows::Epochs(rows) => size_of_val(rows.as_slice()),
            NodeRows::Members(rows) => {
                let texts = rows.iter().map(|row| row.start.name.len() + 200);
                size_of_val(rows.as_slice()) + texts.sum::<usize>()
            }
            NodeRows::Entries(rows) => {
                let paths = rows.iter().map(|row| row.first_path.len());
                size_of_val(rows.as_slice()) + paths.sum::<usize>()
            }
            NodeRows::Names(rows) => size_of_val(rows.as_slice()),
            NodeRows::Slices(rows) => {
                let paths = rows.iter().map(|row| row.separator.len());
                size_of_val(rows.as_slice()) + paths.sum::<usize>()
            }
            NodeRows::Children(rows) => {
                let paths = rows.iter().map(|row| match &row.first {
                    RowKey::Entries { first_path, .. } => first_path.len(),
                    RowKey::Slice { separator, .. } => separator.len(),
                    RowKey::Start(_) | RowKey::Name(_) => 0,
                });
                size_of_val(rows.as_slice()) + paths.sum::<usize>()
            }
        };
        size_of::<Self>() + variable
    }
}

fn take_rows<T>(
    count: u64,
    reader: &mut ByteReader<'_>,
    mut take: impl FnMut(&mut ByteReader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let possible = reader.remaining() / ROW_BYTES_MIN;
    let mut rows = Vec::with_capacity(possible.min(usize::try_from(count).unwrap_or(possible)));
    for _ in 0..count {
        rows.push(take(reader)?);
    }
    Ok(rows)
}

fn take_depth(reader: &mut ByteReader<'_>) -> Result<u8> {
    let depth = reader.varint()?;
    check_limit(
        "depth of a node of the index",
        depth,
        u64::from(INDEX_DEPTH_MAX),
    )?;
    Ok(depth as u8)
}

#[derive(Debug, Clone)]
pub(super) struct EncodedNode {
    pub list: IndexList,
    pub depth: u8,
    pub row_count: u64,
    pub first_row: u64,
    pub start: [u64; 2],
    pub rows: Vec<u8>,
}

impl EncodedNode {
    pub(super) fn payload(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        let [start_a, start_b] = self.start;
        let numbers = [
            self.list.id(),
            u64::from(self.depth),
            self.row_count,
            self.first_row,
            start_a,
            start_b,
        ];
        put_varints(&mut fields, &numbers);
        let mut payload = head_of(&fields);
        payload.extend_from_slice(&self.rows);
        payload
    }

    /// Appends the node as a root in the End frame.
    pub(super) fn put_root(&self, out: &mut Vec<u8>) {
        let numbers = [
            self.list.id(),
            u64::from(self.depth),
            self.row_count,
            self.rows.len() as u64,
        ];
        put_varints(out, &numbers);
        out.extend_from_slice(&self.rows);
    }
}

/// Parses the roots in the data of an End frame, at most one for each list. A list without rows has
/// none.
///
/// # Errors
/// Lists that are not in ascending order; as [`IndexNode::parse`].
pub(crate) fn parse_roots(data: &[u8]) -> Result<Vec<IndexNode>> {
    check_limit(
        "bytes of the roots of the index",
        data.len() as u64,
        INDEX_BYTES_MAX,
    )?;
    let mut reader = ByteReader::new("roots of the index", data);
    let mut roots = Vec::new();
    let mut previous_id = 0;
    while reader.remaining() > 0 {
        let id = reader.varint()?;
        let list = IndexList::from_id(id)?;
        if id <= previous_id {
            return Err(FormatError::Value {
                what: "list of a root of the index",
                value: id,
                rule: "above the previous root's",
            });
        }
        previous_id = id;
        let depth = take_depth(&mut reader)?;
        let row_count = reader.varint()?;
        let rows_bytes = reader.count(1)?;
        let rows = reader.take(rows_bytes)?;
        if let Some(list) = list {
            let shape = NodeShape {
                list,
                depth,
                row_count,
                first_row: 0,
                start: [0, 0],
            };
            roots.push(IndexNode::parse_rows(shape, rows)?);
        }
    }
    Ok(roots)
}
