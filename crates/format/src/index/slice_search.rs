//! Finds the slices of a member that may hold a path. The member is identified by the numbers of
//! its frames of entries, which follow earlier members' frames.

use std::ops::Range;

use super::rows::{ChildNode, IndexSlice, RowKey};
use refrain_entries::compare_paths;

/// Whether a slice belongs to this member and may be the last candidate for `path`.
pub(super) fn may_hold(slice: &IndexSlice, frames: &Range<u64>, path: &[u8]) -> bool {
    frames.contains(&slice.frame) && compare_paths(&slice.separator, path).is_le()
}

/// The first slice that may hold `path`: cut separators can leave several. `rows` are the rows of
/// the member up to the last candidate.
pub(super) fn first_row_for_path<E>(
    rows: Range<u64>,
    path: &[u8],
    row: &mut dyn FnMut(u64) -> Result<Option<IndexSlice>, E>,
) -> Result<u64, E> {
    let mut start = rows.end.saturating_sub(1);
    while start > rows.start
        && let Some(found) = row(start)?
        && found.is_cut()
        && path.starts_with(&found.separator)
    {
        start -= 1;
    }
    Ok(start)
}

/// Whether the slices under a node begin in an earlier member, or with one that may be before
/// `path` in the member with these frames.
pub(super) fn begins_before(child: &ChildNode, frames: &Range<u64>, path: &[u8]) -> bool {
    match &child.first {
        RowKey::Slice { frame, .. } if *frame < frames.start => true,
        RowKey::Slice { frame, separator } => {
            *frame < frames.end && compare_paths(separator, path).is_le()
        }
        _ => false,
    }
}
