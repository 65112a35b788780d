//! Where a block ends because another kind of content begins: tables, text, other data.

use refrain_codec::PageKind;

use crate::store::page::PAGE_BYTES;

/// A run of pages of one kind of this share of a block, and at least so much, begins a block of its
/// own, behind as many others. With 1 MiB at level 7, whose blocks are 32 MiB, 60 MB of programs
/// were 2 % larger, and a part of a disk image 1 % smaller.
const RUN_BLOCK_SHARE: u64 = 16;
const RUN_BYTES_MIN: u64 = 1 << 20;
/// A page is judged by its beginning.
const JUDGED_BYTES: usize = 8 << 10;

/// The number of pages of the run that begins a block.
pub(super) fn run_pages(block_bytes: u64) -> usize {
    let bytes = (block_bytes / RUN_BLOCK_SHARE).max(RUN_BYTES_MIN);
    (bytes / PAGE_BYTES as u64) as usize
}

/// The kinds of the pages of a block that is being filled.
#[derive(Default)]
pub(super) struct Kinds {
    /// Of its first long run; `None` as long as there was none.
    of_block: Option<PageKind>,
    of_run: Option<PageKind>,
    pages_in_run: usize,
}

impl Kinds {
    /// Takes the next page, the last of `pages` in the block. Whether the block should end before
    /// the last `run_pages`, which are then the first of the next block.
    pub(super) fn add(&mut self, page: &[u8], pages: usize, run_pages: usize) -> bool {
        let kind = PageKind::of(&page[..page.len().min(JUDGED_BYTES)]);
        self.add_kind(kind, pages, run_pages)
    }

    fn add_kind(&mut self, kind: PageKind, pages: usize, run_pages: usize) -> bool {
        if self.of_run != Some(kind) {
            self.of_run = Some(kind);
            self.pages_in_run = 0;
        }
        self.pages_in_run += 1;
        if self.pages_in_run != run_pages || self.of_block == Some(kind) {
            return false;
        }
        let ends = pages >= 2 * run_pages;
        if ends || self.of_block.is_none() {
            self.of_block = Some(kind);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of pages after which blocks end, of runs of kinds.
    fn ends(runs: &[(PageKind, usize)]) -> Vec<usize> {
        let (mut kinds, mut pages, mut ends) = (Kinds::default(), 0, Vec::new());
        let all = runs
            .iter()
            .flat_map(|&(kind, count)| std::iter::repeat_n(kind, count));
        for (number, kind) in all.enumerate() {
            pages += 1;
            if kinds.add_kind(kind, pages, 16) {
                ends.push(number + 1 - 16);
                pages = 16;
            }
        }
        ends
    }

    #[test]
    fn long_runs_of_another_kind_end_a_block() {
        let (code, text, table) = (PageKind::Other, PageKind::Text, PageKind::Table(24));
        assert_eq!(ends(&[(code, 100)]), []);
        assert_eq!(ends(&[(code, 40), (text, 15), (code, 40), (text, 15)]), []);
        assert_eq!(ends(&[(code, 40), (text, 16), (table, 200)]), [40, 56]);
        // What comes before the first long run is a block if it is long enough itself.
        assert_eq!(ends(&[(code, 9), (text, 6), (table, 20)]), []);
        assert_eq!(ends(&[(code, 9), (text, 7), (table, 20)]), [16]);
        assert_eq!(ends(&[(code, 3), (text, 20), (code, 20)]), [23]);
    }
}
