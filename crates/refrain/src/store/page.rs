//! Pages: the units in which the store is kept in memory, evicted and read again.

use std::sync::Arc;

use refrain_pool::PooledBuffer;

/// Bytes of the store in a page. Blocks are whole pages; only a block's last page may be shorter.
///
/// A page is small because repeats of short passages are scattered over the whole store, and each
/// may cost reading a page again: the match stage of two kernel trees took 7.7 s with pages of 1
/// MiB and 2.6 s with these (caches of 96 and 128 MiB).
pub(crate) const PAGE_BYTES: usize = 1 << 16;

pub(crate) type Page = Arc<PooledBuffer>;

/// How many pages fit into `bytes` of memory.
pub(crate) fn pages(bytes: u64) -> usize {
    (bytes / PAGE_BYTES as u64) as usize
}
