//! The rows of the index.

use crate::entries::EntriesHeader;
use crate::member::{MemberEnd, MemberStart};
use refrain_tree::compare_paths;

/// The location of a frame in the archive: its offset and its length in bytes, header included.
pub(super) type FrameSpan = (u64, u64);

/// The location of a block. Its id is its position in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexBlock {
    /// The offset of the frame in the archive.
    pub frame_offset: u64,
    /// The size of the frame in bytes, header included.
    pub frame_bytes: u64,
    /// The offset of the block in the store. It is not written: it is the sum of the raw bytes
    /// before it.
    pub store_start: u64,
    /// The number of bytes of the block in the store.
    pub raw_bytes: u64,
    /// The id of its codec.
    pub codec: u16,
    /// The ids of its filters, 0 for none.
    pub filter_ids: [u8; 2],
}

/// The location of an epoch's Extents frame. The epoch's id is its position in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEpoch {
    /// The offset of the frame in the archive.
    pub frame_offset: u64,
    /// The size of the frame in bytes, header included.
    pub frame_bytes: u64,
    /// The offset of the epoch in the content space. It is not written: it is the sum before it.
    pub content_start: u64,
    /// The number of content bytes of the epoch.
    pub content_bytes: u64,
    /// The number of store bytes that earlier epochs have introduced. It is not written: it is the
    /// sum before it.
    pub store_start: u64,
    /// The number of store bytes that the epoch introduces.
    pub fresh_bytes: u64,
    /// The number of its extents.
    pub extent_count: u64,
}

/// The location of a batch of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntries {
    /// The offset of the frame in the archive.
    pub frame_offset: u64,
    /// The size of the frame in bytes, header included.
    pub frame_bytes: u64,
    /// The number of entries in the frame.
    pub entry_count: u64,
    /// The XXH3-64 of the packed section, as in the frame. No other hash of the archive covers
    /// entries.
    pub packed_checksum: u64,
    /// The path of the first entry that has one, or its first
    /// [`FIRST_PATH_BYTES_MAX`](crate::limits::FIRST_PATH_BYTES_MAX) bytes if it is longer; empty
    /// if no entry of the frame has a path.
    pub first_path: Vec<u8>,
}

impl IndexEntries {
    /// The row of the frame at this location with this header.
    #[must_use]
    pub fn new(frame_offset: u64, frame_bytes: u64, header: &EntriesHeader) -> Self {
        Self {
            frame_offset,
            frame_bytes,
            entry_count: header.entry_count,
            packed_checksum: header.packed_checksum,
            first_path: header.first_path.clone(),
        }
    }

    /// Whether this row may follow one with the first path `before` in a member whose entries are
    /// sorted; then `before` becomes that of this row, if it has one.
    pub(crate) fn follows(&self, before: &mut Vec<u8>) -> bool {
        if self.first_path.is_empty() {
            return true;
        }
        let in_order = compare_paths(before, &self.first_path).is_le();
        before.clone_from(&self.first_path);
        in_order
    }
}

/// A complete member. Its id is its position in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMember {
    /// The offset of its MemberStart frame in the archive.
    pub start_frame_offset: u64,
    /// The offset of its MemberEnd frame in the archive.
    pub end_frame_offset: u64,
    /// The payload of its MemberStart frame.
    pub start: MemberStart,
    /// The payload of its MemberEnd frame.
    pub end: MemberEnd,
    /// Its Entries frames, in file order.
    pub entries: Vec<IndexEntries>,
}

/// Sums that describe the archive without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexTotals {
    /// The number of content bytes of all copies.
    pub matched_bytes: u64,
    /// The number of content bytes of all fills.
    pub run_bytes: u64,
    /// The number of blocks that were not coded as planned.
    pub fallback_count: u64,
    /// The number of the archive's latest bytes that a decoder that cannot seek really needs.
    pub reach_bytes: u64,
}
