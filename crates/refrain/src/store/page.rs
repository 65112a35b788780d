//! Pages: the pieces of the store that are read again and dropped from memory one by one.

use std::sync::Arc;

use refrain_pool::PooledBuffer;

/// Bytes of the store in a page. Blocks are whole pages; only the last page of a block may be shorter.
///
/// Small, because repeats of short passages are scattered over all that was ever stored, and each may cost a page to be
/// read again: the match stage of two kernel trees took 7.7 s with pages of 1 MiB and 2.6 s with these (caches of 96 and
/// 128 MiB).
pub(crate) const PAGE_BYTES: usize = 1 << 16;

/// The bytes of a page.
pub(crate) type Page = Arc<PooledBuffer>;

/// How many pages so much memory holds.
pub(crate) fn pages(bytes: u64) -> usize {
    (bytes / PAGE_BYTES as u64) as usize
}
