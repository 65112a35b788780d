//! One level of a cache of decoded or stored blocks: memory, a local disk, a shared server.
//!
//! The coming crate `cache` stacks several tiers in front of a slow source. This file only fixes
//! what a tier is. A tier may forget any block at any time, and a block that it returns is verified
//! by the caller, so a tier needs neither durability nor checksums.

use std::io;
use std::sync::Arc;

/// Identifies a block over all archives. Blocks are immutable, so a key never changes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// Identifies the archive by content: its root hash.
    pub archive_id: [u8; 32],
    /// The number of the block in the archive.
    pub block_number: u64,
}

/// The outcome of [`CacheTier::insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The tier holds the block now; other blocks may have been evicted.
    Admitted,
    /// The tier does not hold the block: it is too large, or the policy expects no further use.
    Rejected,
}

/// The capacity and the use of a tier, in bytes of block content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierSize {
    /// The most bytes that the tier holds.
    pub capacity_bytes: u64,
    /// The bytes that it holds now; never more than `capacity_bytes`.
    pub used_bytes: u64,
}

/// A bounded map from block keys to block content, used from several threads at once.
pub trait CacheTier: Send + Sync {
    /// Returns the content of a block, or `None` if the tier does not hold it.
    ///
    /// # Errors
    /// A failure of the tier's own storage or connection. The caller treats it as a miss.
    fn get(&self, key: &BlockKey) -> io::Result<Option<Arc<[u8]>>>;

    /// Offers a block. The tier decides on admission and eviction.
    ///
    /// # Errors
    /// As [`CacheTier::get`]; the tier does not hold the block then.
    fn insert(&self, key: &BlockKey, content: Arc<[u8]>) -> io::Result<Admission>;

    /// The capacity and the present use.
    fn size(&self) -> TierSize;
}

/// The tier that holds nothing: a place for a tier that is switched off.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyTier;

impl CacheTier for EmptyTier {
    fn get(&self, _key: &BlockKey) -> io::Result<Option<Arc<[u8]>>> {
        Ok(None)
    }

    fn insert(&self, _key: &BlockKey, _content: Arc<[u8]>) -> io::Result<Admission> {
        Ok(Admission::Rejected)
    }

    fn size(&self) -> TierSize {
        TierSize::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_tier_rejects_every_block() {
        let tier: Arc<dyn CacheTier> = Arc::new(EmptyTier);
        let key = BlockKey {
            archive_id: [1; 32],
            block_number: 5,
        };
        let content: Arc<[u8]> = Arc::from(&b"content"[..]);
        assert_eq!(tier.insert(&key, content).unwrap(), Admission::Rejected);
        assert!(tier.get(&key).unwrap().is_none());
        assert_eq!(tier.size(), TierSize::default());
    }
}
