//! Pages: the units in which the store is retained in memory, evicted and read again.

use std::sync::Arc;

use refrain_pool::PooledBuffer;

/// Bytes of the store in a page. Blocks are whole pages; only the last page of a block may be
/// shorter.
///
/// A page is small because repeats of short passages are scattered over the whole store, and each
/// of them may cost one page that is read again: the match stage of two kernel trees took 7.7 s
/// with pages of 1 MiB and 2.6 s with these (caches of 96 and 128 MiB).
pub(crate) const PAGE_BYTES: usize = 1 << 16;

/// The bytes of a page.
pub(crate) type Page = Arc<PooledBuffer>;

/// The number of pages that fit in `bytes` of memory.
pub(crate) fn pages(bytes: u64) -> usize {
    (bytes / PAGE_BYTES as u64) as usize
}
