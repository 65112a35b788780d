//! Finds the frame that holds an address, and compares a frame that was read through the index with
//! its row. Without the comparison two archives could be mixed without a checksum noticing.

use std::ops::Range;

use super::rows::{IndexEntries, IndexMember};
use super::table::Index;
use crate::block::BlockHeader;
use crate::check::check_equal;
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;
use crate::frame::FrameHeader;
use crate::layout::FrameKind;
use crate::limits::FIRST_PATH_BYTES_MAX;
use refrain_tree::compare_paths;

impl IndexMember {
    /// Returns which of the frames in [`entries`](Self::entries) may hold the entry with this path:
    /// if the entries are sorted, at most one, unless paths are very long; otherwise all. In an
    /// unsorted member several entries may have the path; the last one counts, as in tar.
    #[must_use]
    pub fn frames_for_path(&self, path: &[u8]) -> Range<usize> {
        if !self.end.entries_are_sorted {
            return 0..self.entries.len();
        }
        let may_hold = |row: &IndexEntries| {
            !row.first_path.is_empty() && compare_paths(&row.first_path, path).is_le()
        };
        let Some(mut start) = self.entries.iter().rposition(may_hold) else {
            return 0..0;
        };
        let end = start + 1;
        // A first path that was cut may be above `path`, and then a frame before holds it.
        while let Some(row) = self.entries.get(start)
            && start > 0
            && (row.first_path.is_empty() || is_cut_before(&row.first_path, path))
        {
            start -= 1;
        }
        start..end
    }

    pub(super) fn first_paths_ascend(&self) -> bool {
        let mut before = Vec::new();
        self.entries.iter().all(|row| row.follows(&mut before))
    }
}

impl Index {
    /// Returns the number of the block that holds the byte at `offset_in_store`.
    #[must_use]
    pub fn block_at(&self, offset_in_store: u64) -> Option<usize> {
        let after = self
            .blocks
            .partition_point(|block| block.store_start <= offset_in_store);
        let id = after.checked_sub(1)?;
        let block = self.blocks.get(id)?;
        (offset_in_store - block.store_start < block.raw_bytes).then_some(id)
    }

    /// Returns the number of the epoch that holds the byte at `offset_in_content` of the content
    /// space.
    #[must_use]
    pub fn epoch_at(&self, offset_in_content: u64) -> Option<usize> {
        let after = self
            .epochs
            .partition_point(|epoch| epoch.content_start <= offset_in_content);
        let id = after.checked_sub(1)?;
        let epoch = self.epochs.get(id)?;
        (offset_in_content - epoch.content_start < epoch.content_bytes).then_some(id)
    }

    /// Compares a frame that was read at the location of block `id` with its row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check_block(
        &self,
        id: usize,
        header: &FrameHeader,
        payload: &BlockHeader,
    ) -> Result<()> {
        let row = self.blocks.get(id).ok_or_else(|| missing("block", id))?;
        check_frame(header, FrameKind::Block, row.frame_bytes)?;
        check_equal("block id", payload.block_id, id as u64)?;
        check_equal(
            "start of a block in the store",
            payload.store_start,
            row.store_start,
        )?;
        check_equal("raw bytes of a block", payload.raw_bytes, row.raw_bytes)?;
        check_equal(
            "codec of a block",
            u64::from(payload.coding.codec()),
            u64::from(row.codec),
        )
    }

    /// Compares a frame that was read at the location of epoch `id` with its row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check_epoch(
        &self,
        id: usize,
        header: &FrameHeader,
        payload: &ExtentsHeader,
    ) -> Result<()> {
        let row = self.epochs.get(id).ok_or_else(|| missing("epoch", id))?;
        check_frame(header, FrameKind::Extents, row.frame_bytes)?;
        check_equal("epoch id", payload.epoch_id, id as u64)?;
        check_equal(
            "start of an epoch in the content",
            payload.content_start,
            row.content_start,
        )?;
        check_equal("epoch bytes", payload.content_bytes, row.content_bytes)?;
        check_equal(
            "store bytes introduced before an epoch",
            payload.store_start,
            row.store_start,
        )?;
        check_equal(
            "fresh bytes of an epoch",
            payload.fresh_bytes,
            row.fresh_bytes,
        )?;
        check_equal("number of extents", payload.extent_count, row.extent_count)
    }

    /// Compares a frame that was read at the location of batch `batch` of member `id` with its row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check_entries(
        &self,
        id: usize,
        batch: usize,
        header: &FrameHeader,
        payload: &EntriesHeader,
    ) -> Result<()> {
        let member = self.members.get(id).ok_or_else(|| missing("member", id))?;
        let row = member
            .entries
            .get(batch)
            .ok_or_else(|| missing("batch of entries", batch))?;
        let before = member.entries.iter().take(batch);
        let first_entry = before.fold(0_u64, |sum, row| sum.saturating_add(row.entry_count));
        check_frame(header, FrameKind::Entries, row.frame_bytes)?;
        check_equal("member id", payload.member_id, id as u64)?;
        check_equal("first entry of a batch", payload.first_entry, first_entry)?;
        check_equal("number of entries", payload.entry_count, row.entry_count)?;
        if payload.first_path != row.first_path {
            return Err(FormatError::Value {
                what: "bytes of the first path of a frame of entries",
                value: payload.first_path.len() as u64,
                rule: "the path in the index",
            });
        }
        match payload.packed_checksum == row.packed_checksum {
            true => Ok(()),
            false => Err(FormatError::Checksum {
                what: "entries (compared with the index)",
                found: payload.packed_checksum,
                expected: row.packed_checksum,
            }),
        }
    }
}

/// Whether the whole path of which `first_path` is the beginning may be above `path`.
fn is_cut_before(first_path: &[u8], path: &[u8]) -> bool {
    first_path.len() == FIRST_PATH_BYTES_MAX && path.starts_with(first_path)
}

fn check_frame(header: &FrameHeader, kind: FrameKind, frame_bytes: u64) -> Result<()> {
    if header.kind != kind {
        return Err(FormatError::Order {
            kind: header.kind,
            rule: "the index names another kind at this offset",
        });
    }
    check_equal("frame bytes", header.frame_bytes(), frame_bytes)
}

fn missing(what: &'static str, id: usize) -> FormatError {
    FormatError::Value {
        what,
        value: id as u64,
        rule: "in the index",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{MemberEnd, MemberKind, MemberStart};

    fn member(entries_are_sorted: bool, first_paths: &[&[u8]]) -> IndexMember {
        let rows = first_paths.iter().map(|path| IndexEntries {
            frame_offset: 0,
            frame_bytes: 100,
            entry_count: 1,
            packed_checksum: 0,
            first_path: path.to_vec(),
        });
        IndexMember {
            start_frame_offset: 0,
            end_frame_offset: 0,
            start: MemberStart {
                member_id: 0,
                content_start: 0,
                kind: MemberKind::Tree,
                name: Vec::new(),
                mode: None,
                modified: None,
                content_bytes_hint: None,
                extensions: Vec::new(),
            },
            end: MemberEnd {
                member_id: 0,
                content_bytes: 0,
                view_bytes: 0,
                entry_count: first_paths.len() as u64,
                entries_hash: Some([1; 32]),
                blake3: [0; 32],
                entries_are_sorted,
                digests: Vec::new(),
                extensions: Vec::new(),
            },
            entries: rows.collect(),
        }
    }

    #[test]
    fn a_path_of_sorted_entries_is_in_one_frame() {
        let sorted = member(true, &[b"a", b"a/x", b"a-b"]);
        assert_eq!(sorted.frames_for_path(b"."), 0..0);
        assert_eq!(sorted.frames_for_path(b"a"), 0..1);
        assert_eq!(sorted.frames_for_path(b"a/w"), 0..1);
        assert_eq!(sorted.frames_for_path(b"a/x"), 1..2);
        assert_eq!(sorted.frames_for_path(b"a/y/z"), 1..2);
        assert_eq!(sorted.frames_for_path(b"a-b"), 2..3);
        assert_eq!(sorted.frames_for_path(b"zzz"), 2..3);
        let without = member(true, &[b"", b"a", b"", b"b", b""]);
        assert_eq!(without.frames_for_path(b"."), 0..0);
        assert_eq!(without.frames_for_path(b"a/x"), 1..2);
        assert_eq!(without.frames_for_path(b"c"), 3..4);
        let unsorted = member(false, &[b"b", b"a"]);
        assert_eq!(unsorted.frames_for_path(b"a"), 0..2);
        assert_eq!(member(true, &[]).frames_for_path(b"a"), 0..0);
    }

    /// Against a search of the whole paths, of which the rows have only the beginnings.
    #[test]
    fn first_paths_that_were_cut_add_frames_and_lose_none() {
        let long = |end: &[u8]| [&[b'p'; FIRST_PATH_BYTES_MAX - 1][..], end].concat();
        let paths = [
            b"a".to_vec(),
            long(b"b"),
            long(b"bc"),
            long(b"bd"),
            long(b"c"),
        ];
        let rows: Vec<&[u8]> = paths
            .iter()
            .map(|path| &path[..path.len().min(FIRST_PATH_BYTES_MAX)])
            .collect();
        let sorted = member(true, &rows);
        for searched in [
            b"a".to_vec(),
            long(b"a"),
            long(b"b"),
            long(b"bc"),
            long(b"bcx"),
            long(b"be"),
            long(b"cx"),
        ] {
            let holder = paths
                .iter()
                .rposition(|path| compare_paths(path, &searched).is_le())
                .unwrap();
            let found = sorted.frames_for_path(&searched);
            assert!(found.contains(&holder), "{found:?} without {holder}");
        }
        assert_eq!(sorted.frames_for_path(&long(b"cx")), 3..5);
        assert_eq!(sorted.frames_for_path(b"b"), 0..1);
    }
}
