//! Compressed copies of blocks: reading a page decodes only that page, not the whole block.
//!
//! Repeats are scattered, so each may need another block. Where blocks are the only history (a
//! non-seekable stream was compressed), a block is kept as a copy once decoded. Processor time
//! without and with copies: two kernel trees at level 3 32.8 and 20.8 s, 1 GB of them with 512 MiB
//! of memory 40.5 and 24.2 s; two disk images in LZO for lrzip more than 300 and 39.7 s, but at
//! level 3 13.3 and 15.1 s. (Making copies that do not fit, and leaving only a quarter of the rest
//! for recent pages, took 75 s where no copies took 44.)
//!
//! Blocks that decode slowly are copied when encoded, and what does not fit is evicted
//! (`reach.rs`). Decoding them again for every scattered repeat made 1 GB of kernel trees at level
//! 8 with 512 MiB take more than 250 s; copies take 35 s for 0.4 % more bytes. Two kernel trees
//! with 1 GiB take 106 and 54 s, with the same bytes.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::store::compressed_copy::CompressedCopy;
use crate::store::page::PAGE_BYTES;
use crate::write::pipeline::page_cache::rank;

struct CachedCopy {
    pages: u64,
    copy: Arc<CompressedCopy>,
}

/// As many copies as fit into memory; beyond that a fixed sample, as in
/// [`PageCache`](crate::write::pipeline::page_cache::PageCache) and for the same reason.
pub(crate) struct CopyCache {
    /// By the number of the block's first page.
    blocks: BTreeMap<u64, CachedCopy>,
    /// All entries as `(rank, first page)`.
    ranks: BinaryHeap<(u64, u64)>,
    bytes: u64,
    bytes_max: u64,
}

impl CopyCache {
    /// A cache that takes at most `bytes_max` whenever [`CopyCache::add`] has returned.
    pub(crate) fn new(bytes_max: u64) -> CopyCache {
        CopyCache {
            blocks: BTreeMap::new(),
            ranks: BinaryHeap::new(),
            bytes: 0,
            bytes_max,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The copy of the block with this page, and the page's offset in the block.
    pub(crate) fn get(&self, page: u64) -> Option<(Arc<CompressedCopy>, usize)> {
        let (first, entry) = self.blocks.range(..=page).next_back()?;
        let inside = page - first;
        (inside < entry.pages).then(|| (entry.copy.clone(), inside as usize * PAGE_BYTES))
    }

    /// Whether a copy of this block would be kept. Making a copy takes longer than decoding the
    /// block.
    pub(crate) fn has_room_for(&self, first_page: u64) -> bool {
        let is_full = self.bytes + self.bytes / (1 + self.ranks.len() as u64) > self.bytes_max;
        let outranks_one = |&(highest, _): &(u64, u64)| rank(first_page) < highest;
        self.bytes_max > 0 && (!is_full || self.ranks.peek().is_some_and(outranks_one))
    }

    /// Adds the copy of a block with `pages` pages starting at `first_page`. Evicts the copies of
    /// highest rank until all fit. Returns whether this copy was kept.
    pub(crate) fn add(&mut self, first_page: u64, pages: u64, copy: CompressedCopy) -> bool {
        let copy = Arc::new(copy);
        self.bytes += copy.memory_bytes();
        let entry = CachedCopy { pages, copy };
        match self.blocks.insert(first_page, entry) {
            // Two threads decoded the block at the same time.
            Some(before) => self.bytes -= before.copy.memory_bytes(),
            None => self.ranks.push((rank(first_page), first_page)),
        }
        while self.bytes > self.bytes_max
            && let Some((_, highest)) = self.ranks.pop()
        {
            self.remove(highest);
        }
        self.blocks.contains_key(&first_page)
    }

    /// Evicts the blocks whose pages are all below `page`.
    pub(crate) fn evict_below(&mut self, page: u64) {
        let count_before = self.blocks.len();
        while let Some((&first, entry)) = self.blocks.first_key_value()
            && first + entry.pages <= page
        {
            self.remove(first);
        }
        if self.blocks.len() < count_before {
            let blocks = &self.blocks;
            self.ranks.retain(|(_, first)| blocks.contains_key(first));
        }
    }

    fn remove(&mut self, first_page: u64) {
        if let Some(entry) = self.blocks.remove(&first_page) {
            self.bytes -= entry.copy.memory_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_codec::Workspace;

    fn block(seed: u8, pages: usize) -> Vec<u8> {
        (0..pages * PAGE_BYTES)
            .map(|at| seed.wrapping_add((at / 100) as u8))
            .collect()
    }

    #[test]
    fn reads_pages_from_copies_and_retains_no_more_than_fits() {
        let mut workspace = Workspace::new();
        let size = CompressedCopy::new(&mut workspace, &block(0, 4))
            .unwrap()
            .memory_bytes();
        let mut blocks = CopyCache::new(size * 10);
        for number in 0..40 {
            let copy = CompressedCopy::new(&mut workspace, &block(number, 4)).unwrap();
            let first_page = u64::from(number) * 4;
            let has_room = blocks.has_room_for(first_page);
            assert_eq!(blocks.add(first_page, 4, copy), has_room, "{number}");
            assert!(blocks.bytes() <= size * 10 + size / 10);
        }
        let retained: Vec<u8> = (0..40)
            .filter(|&number| blocks.get(u64::from(number) * 4 + 3).is_some())
            .collect();
        assert!((8..=11).contains(&retained.len()), "{retained:?}");
        for &number in &retained {
            let (copy, offset) = blocks.get(u64::from(number) * 4 + 2).unwrap();
            let mut page = vec![0; PAGE_BYTES];
            copy.read(&mut workspace, offset, &mut page).unwrap();
            assert!(page == block(number, 4)[2 * PAGE_BYTES..3 * PAGE_BYTES]);
        }
        assert!(blocks.get(160).is_none());
        blocks.evict_below(80);
        assert!((0..80).all(|page| blocks.get(page).is_none()));
        blocks.evict_below(160);
        assert_eq!((blocks.bytes(), blocks.ranks.len()), (0, 0));
    }
}
