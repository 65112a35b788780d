//! Cuts the entries of a member into batches, one for each frame.

use refrain_entries::Entry;

use super::entry::entry_bytes;
use crate::limits::{ENTRIES_PER_FRAME_MAX, ENTRY_BYTES_PER_FRAME_MAX};

/// The most entries that [`entry_batches`] puts into one frame. Versions of a tree share only what
/// is in the same frame, but finding one path unpacks a whole frame, at about 0.1 µs for each
/// entry.
pub const ENTRIES_PER_BATCH: usize = 49_152;

const _: () = assert!(ENTRIES_PER_BATCH as u64 <= ENTRIES_PER_FRAME_MAX);

/// Cuts a member's entries into batches, each of which fits one frame.
pub fn entry_batches(mut entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    std::iter::from_fn(move || {
        let (batch, rest) = entries.split_at_checked(batch_count(entries))?;
        entries = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

fn batch_count(entries: &[Entry]) -> usize {
    let mut sum_bytes = 0_usize;
    entries
        .iter()
        .take(ENTRIES_PER_BATCH)
        .take_while(|entry| {
            sum_bytes = sum_bytes.saturating_add(entry_bytes(entry));
            sum_bytes <= ENTRY_BYTES_PER_FRAME_MAX
        })
        .count()
        // `pack_entries` rejects an entry that is too long for any frame.
        .max(usize::from(!entries.is_empty()))
}
