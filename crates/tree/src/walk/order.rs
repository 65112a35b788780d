//! The order in which the contents of files are stored.

use crate::entry::{Entry, EntryKind};

/// The order in which the contents of `entries`, which are in path order, are best stored: the
/// positions of the files that have data.
#[must_use]
pub fn content_order(entries: &[Entry]) -> Vec<u32> {
    let positions = (0..).zip(entries);
    let files = positions.filter(|(_, e)| e.kind == EntryKind::File && e.size_bytes > 0);
    files.map(|(position, _)| position).collect()
}
