//! Rebuilds content from extents and the store: the inverse of the match stage.
#![forbid(unsafe_code)]

use crate::extent::Extent;

/// Appends to `content` the bytes that `extents` describe; fresh extents begin at `fresh_from` in
/// `store`. Returns the end of the fresh bytes, or `None` if an extent points outside the store.
pub fn replay(
    extents: &[Extent],
    store: &[u8],
    fresh_from: u64,
    content: &mut Vec<u8>,
) -> Option<u64> {
    let mut fresh = fresh_from;
    for extent in extents {
        match extent {
            &Extent::Fresh { length } => {
                content.extend_from_slice(range(store, fresh, length)?);
                fresh += length;
            }
            &Extent::Copy {
                length,
                offset_in_store,
            } => {
                content.extend_from_slice(range(store, offset_in_store, length)?);
            }
            // Only the archive has it.
            Extent::Known { .. } => return None,
            Extent::Fill { length, pattern } => {
                let length = usize::try_from(*length).ok()?;
                content.extend(pattern.bytes().iter().copied().cycle().take(length));
            }
        }
    }
    Some(fresh)
}

fn range(store: &[u8], from: u64, length: u64) -> Option<&[u8]> {
    let from = usize::try_from(from).ok()?;
    store.get(from..from.checked_add(usize::try_from(length).ok()?)?)
}
