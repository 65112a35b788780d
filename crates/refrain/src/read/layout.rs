//! What an archive consists of, piece by piece: for those who describe it and decode nothing.

use std::ops::Range;

use crate::archive_info::Member;
use crate::error::{Error, ErrorKind, Result};

/// Is called for a member, with its number and the range of content that it has.
pub type EachMemberContent<'a> = dyn FnMut(usize, &Member, Range<u64>) -> Result<()> + 'a;

/// A part of the content and where its bytes are. Parts follow each other without gaps.
///
/// Offsets in content and store count over all archives of a file: those of the second one, if
/// several stand one behind the other, follow those of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentExtent {
    /// Where it begins in the content of all members.
    pub content_offset: u64,
    /// Its length in bytes; never 0.
    pub length_bytes: u64,
    /// Where its bytes are.
    pub origin: ExtentOrigin,
}

/// Where the bytes of an extent are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentOrigin {
    /// In the store from this offset on, and they occur here for the first time. These extents
    /// ascend in content and store, and together they are the store.
    First {
        /// Where they are in the store.
        offset_in_store: u64,
    },
    /// In the store from this offset on, because earlier content has them, too.
    Repeat {
        /// Where they are in the store.
        offset_in_store: u64,
    },
    /// Nowhere: they are a short pattern, again and again.
    Fill {
        /// Whether all are zero.
        is_zero: bool,
    },
}

/// A block of the store, as the index states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreBlock {
    /// Where it begins in the store, counted over all archives of a file.
    pub offset_in_store: u64,
    /// Its bytes in the store.
    pub raw_bytes: u64,
    /// Bytes of its frame.
    pub stored_bytes: u64,
    /// Name of its codec.
    pub codec: String,
    /// Filters before it, joined by `+`; empty for none.
    pub filters: String,
}

/// The content and the store that precede an archive in its file, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LayoutBase {
    pub content_bytes: u64,
    pub store_bytes: u64,
}

/// The error of archives without extents.
pub(crate) fn no_extents() -> Error {
    let text = "the archive has no extents and no store: it has not Refrain's own format";
    Error::new(ErrorKind::Unsupported, text)
}
