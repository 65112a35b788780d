//! The rows of the index.

use crate::member::{MemberEnd, MemberStart};

/// A frame's place.
pub(super) type Place = (u64, u64);

/// Where a block is. Its id is its position in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexBlock {
    /// Where the frame begins in the archive.
    pub frame_offset: u64,
    /// Bytes of the frame, header included.
    pub frame_bytes: u64,
    /// Where the block begins in the store. Not written: the sum of the raw bytes before it.
    pub store_start: u64,
    /// Bytes of the block in the store.
    pub raw_bytes: u64,
    /// Its codec's number.
    pub codec: u16,
    /// Its filters' ids, 0 for none.
    pub filter_ids: [u8; 2],
}

/// Where an epoch's extents are. Its id is its position in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEpoch {
    /// Where the frame begins in the archive.
    pub frame_offset: u64,
    /// Bytes of the frame, header included.
    pub frame_bytes: u64,
    /// Where the epoch begins in the content space. Not written: the sum before it.
    pub content_start: u64,
    /// Content bytes of the epoch.
    pub content_bytes: u64,
    /// Store bytes that earlier epochs have shown. Not written: the sum before it.
    pub store_start: u64,
    /// Store bytes that the epoch shows for the first time.
    pub fresh_bytes: u64,
    /// Its number of extents.
    pub extent_count: u64,
}

/// Where a batch of entries is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntries {
    /// Where the frame begins in the archive.
    pub frame_offset: u64,
    /// Bytes of the frame, header included.
    pub frame_bytes: u64,
    /// Entries in the frame.
    pub entry_count: u64,
    /// XXH3-64 of the packed section, as in the frame: no other hash of the archive covers entries.
    pub packed_checksum: u64,
}

/// A member, whole. Its id is its position in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMember {
    /// Where its MemberStart frame begins in the archive.
    pub start_frame_offset: u64,
    /// Where its MemberEnd frame begins in the archive.
    pub end_frame_offset: u64,
    /// The same as in its MemberStart frame.
    pub start: MemberStart,
    /// The same as in its MemberEnd frame.
    pub end: MemberEnd,
    /// Its Entries frames, in file order.
    pub entries: Vec<IndexEntries>,
}

/// Sums that say what the archive is like without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexTotals {
    /// Content bytes of all copies.
    pub matched_bytes: u64,
    /// Content bytes of all fills.
    pub run_bytes: u64,
    /// Blocks that were not coded as planned.
    pub fallback_count: u64,
    /// How many of the archive's latest bytes a decoder that cannot seek really needs.
    pub reach_bytes: u64,
}
