//! Finds the frames of sorted entries that may hold a path. Rows know only the first path of a
//! frame, cut after some bytes, or none if no entry of the frame has a path.

use std::ops::Range;

use super::list::IndexList;
use super::node::{IndexNode, NodeRows};
use super::rows::{ChildNode, IndexEntries, RowKey};
use super::tree::{IndexTree, NodeSource};
use crate::limits::FIRST_PATH_BYTES_MAX;
use refrain_entries::compare_paths;

/// Whether a frame with this first path may be the last one that may hold `path`.
pub(super) fn may_hold(first_path: &[u8], path: &[u8]) -> bool {
    !first_path.is_empty() && compare_paths(first_path, path).is_le()
}

/// Whether a frame before one with this first path may hold `path` as well: the row has no path, or
/// its path was cut and may be above `path` as a whole.
pub(super) fn may_be_before(first_path: &[u8], path: &[u8]) -> bool {
    first_path.is_empty()
        || (first_path.len() == FIRST_PATH_BYTES_MAX && path.starts_with(first_path))
}

/// The first of the frames that may hold `path`. `rows` are those of its member up to the last that
/// may hold it.
pub(super) fn frames_before<E>(
    rows: Range<u64>,
    path: &[u8],
    row: &mut dyn FnMut(u64) -> Result<Option<IndexEntries>, E>,
) -> Result<u64, E> {
    let mut start = rows.end.saturating_sub(1);
    while start > rows.start
        && let Some(found) = row(start)?
        && may_be_before(&found.first_path, path)
    {
        start -= 1;
    }
    Ok(start)
}

/// Where the first row under a node is, seen from a path in a member.
enum Position {
    /// In an earlier member: rows of the member may follow in the node.
    EarlierMember,
    /// In the member, without a path.
    Unknown,
    /// In the member, not above the path.
    Before,
    /// Above the path, or in a later member.
    After,
}

impl Position {
    fn of(child: &ChildNode, member: u64, path: &[u8]) -> Self {
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
/// The rows of a member are sorted where they have a path, so the search goes back from the first
/// node that begins above the path. It enters more than one node of a depth only where nodes begin
/// with rows without a path.
pub(super) fn last_row_for_path<S: NodeSource>(
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
        let position = Position::of(child, member, path);
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
