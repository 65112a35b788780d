//! A block as caches know it: by its hash, whatever archive it is in.

use refrain_format::{BlockHash, IndexBlock};
use refrain_storage::NamedRange;

/// A block with a hash, and its place in this archive.
pub(crate) struct NamedBlock {
    pub hash: BlockHash,
    pub block_id: u64,
    pub store_start: u64,
}

impl NamedBlock {
    /// The block of a row and its number; `None` if the row has no hash.
    pub(crate) fn of((block_id, row): (u64, IndexBlock)) -> Option<NamedBlock> {
        Some(NamedBlock {
            hash: row.hash?,
            block_id,
            store_start: row.store_start,
        })
    }
}

impl NamedRange for NamedBlock {
    fn name(&self) -> [u8; 16] {
        self.hash.bytes()
    }

    fn value_of(&self, range: &[u8]) -> Option<Vec<u8>> {
        self.hash.block_of(range)
    }

    fn range_of(&self, value: &[u8]) -> Option<Vec<u8>> {
        self.hash.frame_of(value, self.block_id, self.store_start)
    }
}
