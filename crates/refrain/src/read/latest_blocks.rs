//! The blocks that one read has used, found again without the shared cache.

use std::ops::Range;
use std::sync::{Arc, Weak};

/// How many blocks are found again.
const BLOCKS: usize = 8;

/// The latest blocks of one read, each with its location `L`.
///
/// Extents may be tiny, and most are in the blocks of those before them. The shared cache remains
/// the owner of the blocks, so its limits hold.
pub(super) struct LatestBlocks<L> {
    blocks: [Option<LatestBlock<L>>; BLOCKS],
    /// Where the latest is.
    latest: usize,
    /// How often one was found, since [`LatestBlocks::take_hits`].
    hits: u64,
}

struct LatestBlock<L> {
    /// The bytes of the store in the block.
    store: Range<u64>,
    location: L,
    bytes: Weak<Vec<u8>>,
}

impl<L: Copy> LatestBlocks<L> {
    pub(super) fn new() -> LatestBlocks<L> {
        LatestBlocks {
            blocks: [const { None }; BLOCKS],
            latest: 0,
            hits: 0,
        }
    }

    /// A block with the bytes of the store from `offset_in_store`, as many as `length_bytes`, if it
    /// is one of the latest and still in memory. Also returns where in the block they are.
    pub(super) fn get(
        &mut self,
        offset_in_store: u64,
        length_bytes: u64,
    ) -> Option<(L, Range<u64>, Arc<Vec<u8>>)> {
        for step in 0..BLOCKS {
            let number = (self.latest + BLOCKS - step) % BLOCKS;
            let block = self.blocks[number].as_ref()?;
            if !block.store.contains(&offset_in_store) {
                continue;
            }
            let bytes = block.bytes.upgrade()?;
            let inside = offset_in_store - block.store.start;
            let end = inside.checked_add(length_bytes)?;
            // It may be the beginning of the block, or the range may end in the next one.
            if end > bytes.len() as u64 {
                return None;
            }
            self.hits += 1;
            return Some((block.location, inside..end, bytes));
        }
        None
    }

    /// Adds the block with these bytes of the store, or replaces what is known of it.
    pub(super) fn add(&mut self, store: Range<u64>, location: L, bytes: &Arc<Vec<u8>>) {
        let is_same = |known: &Option<LatestBlock<L>>| {
            (known.as_ref()).is_some_and(|known| known.store == store)
        };
        let known = self.blocks.iter().position(is_same);
        let number = known.unwrap_or_else(|| {
            self.latest = (self.latest + 1) % BLOCKS;
            self.latest
        });
        self.blocks[number] = Some(LatestBlock {
            store,
            location,
            bytes: Arc::downgrade(bytes),
        });
    }

    pub(super) fn take_hits(&mut self) -> u64 {
        std::mem::take(&mut self.hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: u64 = 100;

    fn add(latest: &mut LatestBlocks<u64>, block: u64, bytes: &Arc<Vec<u8>>) {
        let start = block * BLOCK_BYTES;
        latest.add(start..start + BLOCK_BYTES, block, bytes);
    }

    #[test]
    fn ranges_of_the_latest_blocks_are_found() {
        let decoded = Arc::new(vec![0; BLOCK_BYTES as usize]);
        let mut latest = LatestBlocks::new();
        assert!(latest.get(0, 1).is_none());
        let all = BLOCKS as u64 + 1;
        (0..all).for_each(|block| add(&mut latest, block, &decoded));
        assert!(latest.get(0, 1).is_none(), "displaced");
        for block in 1..all {
            let start = block * BLOCK_BYTES;
            for inside in [0..BLOCK_BYTES, 40..100, 99..100] {
                let length = inside.end - inside.start;
                let found = latest.get(start + inside.start, length);
                let found = found.map(|(location, range, _)| (location, range));
                assert_eq!(found, Some((block, inside)));
            }
            assert!(latest.get(start + 99, 2).is_none(), "in two blocks");
        }
        assert_eq!(latest.take_hits(), 3 * BLOCKS as u64);
        assert_eq!(latest.take_hits(), 0);
        assert!(latest.get(all * BLOCK_BYTES, 1).is_none());
    }

    #[test]
    fn only_what_is_in_memory_is_found() {
        let mut latest = LatestBlocks::new();
        let beginning = Arc::new(vec![0; 10]);
        add(&mut latest, 3, &beginning);
        assert!(latest.get(300, 10).is_some());
        assert!(latest.get(300, 11).is_none());
        let whole = Arc::new(vec![0; BLOCK_BYTES as usize]);
        add(&mut latest, 3, &whole);
        assert!(latest.get(300, 11).is_some());
        drop(whole);
        assert!(latest.get(300, 1).is_none(), "evicted");
    }
}
