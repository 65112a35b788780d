//! Frames of entries in an archive opened for random access, and slices of them.

use std::ops::Range;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_format::{
    EntriesHeader, FrameKind, Index, IndexEntries, IndexSlice, Limits, compare_paths,
    entries_are_sorted,
};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::read::tree::frame_entries::FrameEntries;
use crate::read::tree::path_order::path_order;
use crate::store::decoders::Decoders;
use crate::store::frames::read_frame_at;
use crate::store::sections::decode_entries;
use crate::store::workspaces::new_workspace;

/// Reads and decodes the frame of a row with an offset in the file.
pub(super) fn read_entries(
    source: &dyn Source,
    row: &IndexEntries,
    decoders: &Decoders,
    limits: &Limits,
) -> Result<Vec<Entry>> {
    let offset = row.frame_offset;
    let frame = read_frame_at(
        source,
        offset,
        FrameKind::Entries,
        Some(row.frame_bytes),
        limits,
    )?;
    let open = || {
        let (head, data) = EntriesHeader::parse(&frame.payload, limits)?;
        row.check(&frame.header, &head)?;
        decode_entries(&mut new_workspace(), decoders, &head, data, limits)
    };
    open().map_err(|error: Error| error.at_offset(offset))
}

/// Checks a frame that is read in slices.
pub(super) fn check_frame(entries: &[Entry]) -> Result<()> {
    if entries_are_sorted(entries) {
        Ok(())
    } else {
        Err(Error::damaged(
            "the entries of a frame are not in path order",
        ))
    }
}

/// The entries of a slice. `next` is the next slice in path order: with the separators of both, no
/// other slice has a path of this one, and all slices are in path order.
pub(super) fn slice_of(
    entries: Arc<Vec<Entry>>,
    slice: &IndexSlice,
    next: Option<&IndexSlice>,
) -> Result<FrameEntries> {
    let damaged = || Error::damaged("a slice of entries is not as the index states it");
    let start = usize::try_from(slice.first_entry).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(slice.entry_count).unwrap_or(usize::MAX));
    let part = FrameEntries::slice(entries, start..end).ok_or_else(damaged)?;
    let (Some(first), Some(last)) = (part.first(), part.last()) else {
        return Err(damaged());
    };
    let is_below = |next: &IndexSlice| {
        let order = compare_paths(&last.path, &next.separator);
        order.is_lt() || (next.is_cut() && last.path.starts_with(&next.separator))
    };
    if first.path.starts_with(&slice.separator) && next.is_none_or(is_below) {
        Ok(part)
    } else {
        Err(damaged())
    }
}

/// The slices of trees found by a scan, for those whose frames are not in path order or whose ends
/// are lost. What cannot be decoded is left out.
pub(super) fn scanned_slices(
    source: &Arc<dyn Source>,
    index: &mut Index,
    (decoders, limits): (&Decoders, &Limits),
    memory_bytes: u64,
) -> Result<Vec<IndexSlice>> {
    drop_undecodable(&**source, index, (decoders, limits))?;
    let mut slices = vec![];
    for member in &index.members {
        if !member.start.kind.is_tree() || member.end.entries_are_sorted {
            continue;
        }
        let rows = index.entries_of_member(member.start.member_id);
        let frames: Range<usize> = rows.start as usize..rows.end as usize;
        let mut decode = |frame: usize| {
            let row = index.entries.get(frame);
            let row = row.ok_or_else(|| Error::damaged("a frame of entries is missing"))?;
            read_entries(&**source, row, decoders, limits).map(Arc::new)
        };
        slices.extend(path_order(frames, memory_bytes, &mut decode)?);
    }
    Ok(slices)
}

/// Removes undecodable frames of unsorted trees.
fn drop_undecodable(
    source: &dyn Source,
    index: &mut Index,
    (decoders, limits): (&Decoders, &Limits),
) -> Result<()> {
    let mut failure = None;
    let members = &index.members;
    index.entries.retain(|row| {
        let found = members.binary_search_by_key(&row.member_id, |other| other.start.member_id);
        let member = found.ok().and_then(|at| members.get(at));
        let is_sliced = member
            .is_some_and(|member| member.start.kind.is_tree() && !member.end.entries_are_sorted);
        if !is_sliced {
            return true;
        }
        let read = read_entries(source, row, decoders, limits);
        match read.and_then(|entries| check_frame(&entries)) {
            Ok(()) => true,
            Err(error) if error.kind == ErrorKind::Io => {
                failure = Some(error);
                true
            }
            Err(_) => false,
        }
    });
    failure.map_or(Ok(()), Err)
}
