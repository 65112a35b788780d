//! Finds the frames of sorted entries that may hold a path. Rows have only the first path of a
//! frame, possibly cut, or none if no entry of the frame has a path.

use std::ops::Range;

use super::rows::IndexEntries;
use crate::limits::FIRST_PATH_BYTES_MAX;
use refrain_entries::compare_paths;

/// Whether a frame with this first path may be the last candidate for `path`.
pub(super) fn may_hold(first_path: &[u8], path: &[u8]) -> bool {
    !first_path.is_empty() && compare_paths(first_path, path).is_le()
}

/// Whether a frame before one with this first path may also hold `path`: the row has no path, or
/// its path was cut and may be above `path` as a whole.
pub(super) fn may_be_before(first_path: &[u8], path: &[u8]) -> bool {
    first_path.is_empty()
        || (first_path.len() == FIRST_PATH_BYTES_MAX && path.starts_with(first_path))
}

/// The first frame that may hold `path`. `rows` are the rows of its member up to the last
/// candidate.
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
