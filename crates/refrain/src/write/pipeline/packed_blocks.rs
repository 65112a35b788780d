//! Blocks that had to be opened again, packed: the second time a page of one is wanted it costs a page, not a block. Blocks that open slowly
//! are packed when they are encoded, and what does not fit is forgotten (`reach.rs`): opening them again for every scattered repeat made 1 GB of kernel
//! trees at level 8 with 512 MiB take more than 250 s, with copies 35 s for 0.4 % more bytes; two kernel trees with 1 GiB 106 and 54 s, the same bytes.
//!
//! What came through a pipe is history only as the archive's own blocks, and repeats are scattered: each may want another block. Processor time
//! without and with this: two kernel trees at level 3 32.8 and 20.8 s, 1 GB of them with 512 MiB of memory 40.5 and 24.2 s; two disk images in
//! LZO for lrzip more than 300 and 39.7 s, but at level 3 13.3 and 15.1 s. (Packing also what finds no room, and leaving only a quarter of the rest for
//! recent pages, took 75 s where nothing packed took 44.)

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::store::packed::Packed;
use crate::store::page::PAGE_BYTES;
use crate::write::pipeline::page_cache::rank;

struct Entry {
    pages: u64,
    packed: Arc<Packed>,
}

/// As many blocks as fit. Beyond that a fixed sample of all, as in [`PageCache`](crate::write::pipeline::page_cache::PageCache), and for its reason.
pub(crate) struct PackedBlocks {
    /// By the number of their first page.
    blocks: BTreeMap<u64, Entry>,
    /// The same as `(rank, first page)`.
    ranks: BinaryHeap<(u64, u64)>,
    bytes: u64,
    bytes_max: u64,
}

impl PackedBlocks {
    /// Takes at most `bytes_max` of memory, once [`PackedBlocks::add`] has returned.
    pub(crate) fn new(bytes_max: u64) -> PackedBlocks {
        PackedBlocks {
            blocks: BTreeMap::new(),
            ranks: BinaryHeap::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Memory that they take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The block with this page, and where in it the page begins.
    pub(crate) fn get(&self, page: u64) -> Option<(Arc<Packed>, usize)> {
        let (first, entry) = self.blocks.range(..=page).next_back()?;
        let inside = page - first;
        (inside < entry.pages).then(|| (entry.packed.clone(), inside as usize * PAGE_BYTES))
    }

    /// Whether a block would stay if it came: packing takes longer than opening.
    pub(crate) fn has_room_for(&self, first_page: u64) -> bool {
        let is_full = self.bytes + self.bytes / (1 + self.ranks.len() as u64) > self.bytes_max;
        let is_ahead = |&(highest, _): &(u64, u64)| rank(first_page) < highest;
        self.bytes_max > 0 && (!is_full || self.ranks.peek().is_some_and(is_ahead))
    }

    /// Adds a block of so many pages from `first_page` on. Those of the highest ranks go, until all fit. Whether this one stayed.
    pub(crate) fn add(&mut self, first_page: u64, pages: u64, packed: Packed) -> bool {
        let packed = Arc::new(packed);
        self.bytes += packed.memory_bytes();
        let entry = Entry { pages, packed };
        match self.blocks.insert(first_page, entry) {
            // Two threads have opened it at once.
            Some(before) => self.bytes -= before.packed.memory_bytes(),
            None => self.ranks.push((rank(first_page), first_page)),
        }
        while self.bytes > self.bytes_max
            && let Some((_, highest)) = self.ranks.pop()
        {
            self.remove(highest);
        }
        self.blocks.contains_key(&first_page)
    }

    /// Pages below `page` will not be asked for any more.
    pub(crate) fn forget_below(&mut self, page: u64) {
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
            self.bytes -= entry.packed.memory_bytes();
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
    fn pages_come_back_and_no_more_is_kept_than_fits() {
        let mut workspace = Workspace::new();
        let size = Packed::new(&mut workspace, &block(0, 4))
            .unwrap()
            .memory_bytes();
        let mut blocks = PackedBlocks::new(size * 10);
        for number in 0..40 {
            let packed = Packed::new(&mut workspace, &block(number, 4)).unwrap();
            let first_page = u64::from(number) * 4;
            let has_room = blocks.has_room_for(first_page);
            assert_eq!(blocks.add(first_page, 4, packed), has_room, "{number}");
            assert!(blocks.bytes() <= size * 10 + size / 10);
        }
        let kept: Vec<u8> = (0..40)
            .filter(|&number| blocks.get(u64::from(number) * 4 + 3).is_some())
            .collect();
        assert!((8..=11).contains(&kept.len()), "{kept:?}");
        for &number in &kept {
            let (packed, offset) = blocks.get(u64::from(number) * 4 + 2).unwrap();
            let mut page = vec![0; PAGE_BYTES];
            packed.read(&mut workspace, offset, &mut page).unwrap();
            assert!(page == block(number, 4)[2 * PAGE_BYTES..3 * PAGE_BYTES]);
        }
        assert!(blocks.get(160).is_none());
        blocks.forget_below(80);
        assert!((0..80).all(|page| blocks.get(page).is_none()));
        blocks.forget_below(160);
        assert_eq!((blocks.bytes(), blocks.ranks.len()), (0, 0));
    }
}
