//! The rows of the index.

use crate::block_hash::BlockHash;
use crate::check::check_equal;
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::limits::FIRST_PATH_BYTES_MAX;
use crate::member::{MemberEnd, MemberStart};
use refrain_entries::compare_paths;
use refrain_protect::checksum64;

/// The location of a frame in the archive: its offset and its length in bytes, header included.
pub type FrameSpan = (u64, u64);

/// The location of a block. Its id is the number of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexBlock {
    /// The offset of the frame in the archive.
    pub frame_offset: u64,
    /// The size of the frame in bytes, header included.
    pub frame_bytes: u64,
    /// The offset of the block in the store. It is not written: it is the sum of the earlier raw
    /// bytes.
    pub store_start: u64,
    /// The number of bytes of the block in the store.
    pub raw_bytes: u64,
    /// The id of its codec.
    pub codec: u16,
    /// The ids of its filters, 0 for none.
    pub filter_ids: [u8; 2],
    /// The hash of the block without its place, if the writer states it.
    pub hash: Option<BlockHash>,
}

/// The location of an epoch's Extents frame. The epoch's id is the number of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEpoch {
    /// The offset of the frame in the archive.
    pub frame_offset: u64,
    /// The size of the frame in bytes, header included.
    pub frame_bytes: u64,
    /// The offset of the epoch in the content space. It is not written: it is a sum over earlier
    /// rows.
    pub content_start: u64,
    /// The number of content bytes of the epoch.
    pub content_bytes: u64,
    /// The number of store bytes introduced by earlier epochs. It is not written: it is a sum over
    /// earlier rows.
    pub store_start: u64,
    /// The number of store bytes that the epoch introduces.
    pub fresh_bytes: u64,
    /// The number of its extents.
    pub extent_count: u64,
}

/// A complete member. Its id is the number of its row.
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
}

/// The location of a batch of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntries {
    /// The offset of the frame in the archive.
    pub frame_offset: u64,
    /// The size of the frame in bytes, header included.
    pub frame_bytes: u64,
    /// The id of the member to which the entries belong.
    pub member_id: u64,
    /// The number of the member's entries in earlier frames. It is not written: it is a sum over
    /// earlier rows.
    pub first_entry: u64,
    /// The number of entries in the frame.
    pub entry_count: u64,
    /// The XXH3-64 of the packed section, as in the frame.
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
            member_id: header.member_id,
            first_entry: header.first_entry,
            entry_count: header.entry_count,
            packed_checksum: header.packed_checksum,
            first_path: header.first_path.clone(),
        }
    }

    /// Whether this row may follow one with the first path `before` in a member with sorted
    /// entries. Sets `before` to the first path of this row, if it has one.
    pub(crate) fn follows(&self, before: &mut Vec<u8>) -> bool {
        if self.first_path.is_empty() {
            return true;
        }
        let in_order = compare_paths(before, &self.first_path).is_le();
        before.clone_from(&self.first_path);
        in_order
    }
}

/// Consecutive entries of a frame that are also consecutive in the path order of their member. A
/// member's rows are in path order but its frames are not, so several slices may belong to one
/// frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSlice {
    /// The number of the frame in the list of frames of entries.
    pub frame: u64,
    /// The number of its first entry in the frame.
    pub first_entry: u64,
    /// The number of its entries.
    pub entry_count: u64,
    /// The shortest beginning of its first path that is above the last path of the previous slice,
    /// at most [`FIRST_PATH_BYTES_MAX`](crate::limits::FIRST_PATH_BYTES_MAX) bytes. Empty exactly
    /// in the first slice of a member.
    pub separator: Vec<u8>,
}

impl IndexSlice {
    /// The separator of a slice that begins with `path`, after a slice that ends with `before`.
    #[must_use]
    pub fn separator_of(before: &[u8], path: &[u8]) -> Vec<u8> {
        let shared = before.iter().zip(path).take_while(|(a, b)| a == b).count();
        let mut length = shared + 1;
        // `.` alone is the root, which sorts before every other path.
        if path.get(..length) == Some(b".") {
            length += 1;
        }
        let length = length.min(FIRST_PATH_BYTES_MAX);
        path.get(..length).unwrap_or(path).to_vec()
    }

    /// Whether the separator was cut too short to tell the slice from the previous one.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.separator.len() == FIRST_PATH_BYTES_MAX
    }

    pub(crate) fn check_follows(&self, before: &[u8]) -> Result<()> {
        let order = compare_paths(before, &self.separator);
        let follows = order.is_lt() || (order.is_eq() && self.is_cut());
        if self.separator.is_empty() || follows {
            Ok(())
        } else {
            Err(FormatError::Value {
                what: "bytes of a path of a slice of entries in the index",
                value: self.separator.len() as u64,
                rule: "above the previous path",
            })
        }
    }

    /// A sum that proves that the rows of a frame have every entry once: the sum over its slices
    /// equals the fingerprint of one slice with all entries.
    pub(crate) fn fingerprint(&self) -> u64 {
        let end = self.first_entry.saturating_add(self.entry_count);
        let border = |entry: u64| {
            let numbers = [self.frame.to_le_bytes(), entry.to_le_bytes()];
            checksum64(&numbers.concat())
        };
        border(end).wrapping_sub(border(self.first_entry))
    }

    pub(crate) fn whole(frame: u64, entry_count: u64) -> Self {
        Self {
            frame,
            first_entry: 0,
            entry_count,
            separator: Vec::new(),
        }
    }
}

/// A member by its name. Rows are sorted by checksum, then by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexName {
    /// The XXH3-64 of the name.
    pub checksum: u64,
    /// The id of the member.
    pub member_id: u64,
}

impl IndexName {
    /// The row of a member with this name.
    #[must_use]
    pub fn new(name: &[u8], member_id: u64) -> Self {
        Self {
            checksum: checksum64(name),
            member_id,
        }
    }

    pub(crate) fn check_follows(self, before: Option<Self>) -> Result<()> {
        if before.is_none_or(|before| before < self) {
            Ok(())
        } else {
            Err(FormatError::Value {
                what: "checksum of a name in the index",
                value: self.checksum,
                rule: "above the previous one (or the member id is)",
            })
        }
    }
}

/// A node of the index, as a row of its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildNode {
    /// The offset of its frame in the archive.
    pub frame_offset: u64,
    /// The size of its frame in bytes, header included.
    pub frame_bytes: u64,
    /// The number of leaf rows of the list before it. It is not written: it is a sum over earlier
    /// rows.
    pub first_row: u64,
    /// The number of leaf rows under it, at least 1.
    pub row_count: u64,
    /// The key of its first leaf row.
    pub first: RowKey,
    /// Where its leaf rows end in the spaces of the list (content, store); 0 if the list has no
    /// such space.
    pub end: [u64; 2],
}

/// What the rows of a list are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKey {
    /// Blocks, epochs and members: where the row begins. Blocks: in the store, and 0. Epochs: in
    /// the content, and in the store. Members: in the content, and 0.
    Start([u64; 2]),
    /// Frames of entries.
    Entries {
        /// The id of the member.
        member_id: u64,
        /// The number of the member's entries in earlier frames.
        first_entry: u64,
        /// The path of the first entry, as in [`IndexEntries::first_path`].
        first_path: Vec<u8>,
    },
    /// Names: the checksum.
    Name(u64),
    /// Slices of frames of entries.
    Slice {
        /// The number of the frame.
        frame: u64,
        /// As in [`IndexSlice::separator`].
        separator: Vec<u8>,
    },
}

impl RowKey {
    /// The start in the spaces of the list, if that is what the rows are sorted by.
    #[must_use]
    pub fn start(&self) -> Option<[u64; 2]> {
        match self {
            Self::Start(start) => Some(*start),
            Self::Entries { .. } | Self::Name(_) | Self::Slice { .. } => None,
        }
    }

    /// Compares the key in a row with the key of the node that it leads to.
    pub(super) fn check(&self, found: &Self) -> Result<()> {
        let what = "first row of a node of the index";
        match (self, found) {
            (Self::Start(expected), Self::Start(found)) => {
                check_equal(what, found[0], expected[0])?;
                check_equal(what, found[1], expected[1])
            }
            (
                Self::Entries {
                    member_id,
                    first_entry,
                    first_path,
                },
                Self::Entries {
                    member_id: found_member,
                    first_entry: found_entry,
                    first_path: found_path,
                },
            ) => {
                check_equal(what, *found_member, *member_id)?;
                check_equal(what, *found_entry, *first_entry)?;
                check_equal(what, checksum64(found_path), checksum64(first_path))
            }
            (Self::Name(expected), Self::Name(found)) => check_equal(what, *found, *expected),
            (
                Self::Slice { frame, separator },
                Self::Slice {
                    frame: found_frame,
                    separator: found_separator,
                },
            ) => {
                check_equal(what, *found_frame, *frame)?;
                check_equal(what, checksum64(found_separator), checksum64(separator))
            }
            _ => Err(FormatError::Value {
                what,
                value: 0,
                rule: "of the list of the node above it",
            }),
        }
    }
}
