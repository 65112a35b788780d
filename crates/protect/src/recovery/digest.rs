//! The digest of a slice.

use crate::hash::xxh3::checksum64;

/// The bytes at the start of a slice by which a search finds it.
pub const PREFIX_BYTES: usize = 32;

/// The bits of a digest that depend on the prefix only.
pub(crate) const PREFIX_BITS: u32 = 24;
const PREFIX_MASK: u64 = (1 << PREFIX_BITS) - 1;

/// Returns the digest of a slice: in its low 24 bits those of the checksum of the first 32 bytes,
/// above them the low 40 bits of the checksum of the whole. A shorter slice must be extended by
/// zeros.
///
/// A search computes the digest of a prefix at every byte, and all of it only where that is known.
#[must_use]
pub fn slice_digest(slice: &[u8]) -> u64 {
    let prefix = slice.get(..PREFIX_BYTES).unwrap_or(slice);
    (checksum64(slice) << PREFIX_BITS) | prefix_digest(prefix)
}

pub(crate) fn prefix_digest(prefix: &[u8]) -> u64 {
    checksum64(prefix) & PREFIX_MASK
}

pub(crate) fn prefix_of(digest: u64) -> usize {
    (digest & PREFIX_MASK) as usize
}
