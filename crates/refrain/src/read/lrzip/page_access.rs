//! What replaying records does with the store beyond reading it: pages as a whole, and their memory.

use std::sync::Arc;

use crate::error::Result;
use crate::read::block_cache::{BlockCache, SPARE_BUFFERS_MAX};
use crate::read::store_reader::{Depth, StoreReader};

impl StoreReader {
    /// The block that holds the byte at `offset_in_store`, and where it begins.
    pub(crate) fn page(&self, offset_in_store: u64) -> Result<(u64, Arc<Vec<u8>>)> {
        let place = self.locate(offset_in_store)?;
        let page = self.open(&place, place.raw_bytes, Depth::Whole)?;
        Ok((place.store_start, page))
    }

    /// Keeps the memory of all blocks that go for the next ones, or of a few. They have one length, and long-lived small memory that ends up between
    /// such that comes and goes can take several times what is in use (kern2 through a pipe: 1.77 GB for 0.55).
    pub(crate) fn keep_all_spares(&self, all: bool) {
        self.resources.cache.lock().keep_all_spares(all);
    }

    /// Lets a block go that will not be wanted again.
    pub(crate) fn forget(&self, block: u64) {
        self.resources.cache.lock().remove(block);
    }
}

impl BlockCache {
    /// Keeps the memory of all blocks that go for the next ones, or, as usual, of a few.
    pub(crate) fn keep_all_spares(&mut self, all: bool) {
        self.spare_buffers_max = if all { usize::MAX } else { SPARE_BUFFERS_MAX };
        self.spare_buffers.truncate(self.spare_buffers_max);
    }
}
