//! Describes an archive's contents piece by piece, for those who decode nothing.

use std::ops::Range;

use crate::archive_info::Member;
use crate::error::{Error, ErrorKind, Result};

/// Called for a member, with its number and its range of content.
pub type EachMemberContent<'a> = dyn FnMut(usize, &Member, Range<u64>) -> Result<()> + 'a;

/// A part of the content and where its bytes are. Parts follow each other without gaps.
///
/// Offsets in content and store count over all concatenated archives of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentExtent {
    /// Where it starts in the content of all members.
    pub content_offset: u64,
    /// Its length in bytes; never 0.
    pub length_bytes: u64,
    /// Where its bytes are.
    pub origin: ExtentOrigin,
}

/// Where the bytes of an extent are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentOrigin {
    /// In the store at this offset, for the first time. These extents ascend in content and store,
    /// and together they are the store.
    First {
        /// Its offset in the store.
        offset_in_store: u64,
    },
    /// In the store at this offset, because earlier content has the same bytes.
    Repeat {
        /// Its offset in the store.
        offset_in_store: u64,
    },
    /// Nowhere: a short repeated pattern.
    Fill {
        /// Whether all are zero.
        is_zero: bool,
    },
}

/// A block of the store, as described by the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreBlock {
    /// Where it starts in the store, counted over all archives of a file.
    pub offset_in_store: u64,
    /// Its bytes in the store.
    pub raw_bytes: u64,
    /// Bytes of its frame.
    pub stored_bytes: u64,
    /// Name of its codec.
    pub codec: String,
    /// Filters before it, joined by `+`; empty if none.
    pub filters: String,
    /// Whether it was given back to the file system, and cannot be read.
    pub is_given_back: bool,
}

/// The content and store that precede an archive in its file, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LayoutBase {
    pub content_bytes: u64,
    pub store_bytes: u64,
}

/// The error of archives without extents.
pub(crate) fn no_extents() -> Error {
    let text = "the archive has no extents and no store: it is not in Refrain's own format";
    Error::new(ErrorKind::Unsupported, text)
}
