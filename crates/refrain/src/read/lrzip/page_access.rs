//! Access to whole pages of the store, and control of their buffers, for replaying records.

use std::sync::Arc;

use crate::error::Result;
use crate::read::block_cache::{BlockCache, SPARE_BUFFERS_MAX};
use crate::read::store_reader::{Depth, StoreReader};

impl StoreReader {
    /// The store offset and bytes of the page with the byte at `offset_in_store`.
    pub(crate) fn page(&self, offset_in_store: u64) -> Result<(u64, Arc<Vec<u8>>)> {
        let location = self.locate(offset_in_store)?;
        let page = self.open(&location, location.raw_bytes, Depth::Whole, None)?;
        Ok((location.store_start, page))
    }

    /// Sets whether the buffers of all evicted pages are reused, or of a few. Pages have equal
    /// lengths. If they are freed and allocated alternately with small long-lived allocations,
    /// fragmentation can take several times the memory in use (kern2 through a pipe: 1.77 GB
    /// instead of 0.55).
    pub(crate) fn reuse_all_buffers(&self, all: bool) {
        for shard in self.resources.cache.all() {
            shard.lock().reuse_all_buffers(all);
        }
    }

    /// Releases a block that is not needed again.
    pub(crate) fn release(&self, block: u64) {
        self.resources.cache.shard_for(block).lock().remove(block);
    }
}

impl BlockCache {
    /// Sets whether the buffers of all evicted blocks are reused, or, by default, of a few.
    pub(crate) fn reuse_all_buffers(&mut self, all: bool) {
        self.spare_buffers_max = if all { usize::MAX } else { SPARE_BUFFERS_MAX };
        self.spare_buffers.truncate(self.spare_buffers_max);
    }
}
