//! What the match stage knows of earlier generations: a sample of their anchors, and all anchors of
//! the places where it found a repeat.
//!
//! An archive keeps one anchor in 4 KiB of its store or so, chosen by its fingerprint, and more of
//! what a small generation added. That is enough to meet every repeat of some length; its ends are
//! found by comparing bytes. Where a repeat begins or ends, something changed, and what else
//! changed nearby is likely to be found there too; and what follows in the store is likely to
//! follow in the content. These pages are read once, and all their anchors enter the index (as
//! sparse indexing loads the manifests of segments that were met; Lillibridge and others, FAST
//! 2009).

use refrain_longmatch::{
    FingerprintIndex, History, IndexWords, Match, MatchSource, Rules, SegmentScan, scan_segment,
};
use refrain_pool::pool::checkpoint;

use crate::store::page::PAGE_BYTES;
use crate::write::pipeline::history::StoreHistory;

/// How many pages are looked at where a repeat ends.
const PAGES_BEHIND: u64 = 4;

/// How many pages are looked at behind the last repeat of an epoch, some more than an epoch's
/// bytes: the store has its bytes in the order of content, so what follows there is likely to be
/// what is read next. An image has many short passages between zeros and repeats, each of which
/// needs an anchor of its own. (A disk image of 1 GiB with 7 MB of changes: without this 80 MB were
/// stored again.)
const PAGES_AHEAD: u64 = 320;

/// The pages of earlier generations.
pub(crate) struct EarlierPages {
    /// One bit for each page: whether its anchors are in the index.
    seen: Vec<u64>,
    scan: SegmentScan,
}

impl EarlierPages {
    /// Of a store of this length in bytes.
    pub(crate) fn new(store_bytes: u64) -> EarlierPages {
        let pages = store_bytes.div_ceil(PAGE_BYTES as u64);
        EarlierPages {
            seen: vec![0; pages.div_ceil(u64::from(u64::BITS)) as usize],
            scan: SegmentScan::default(),
        }
    }

    /// Inserts the anchors of the pages in which these matches begin or end. Which these are
    /// depends on the matches alone, so the index does not depend on threads.
    pub(crate) fn look_closer<W: IndexWords>(
        &mut self,
        matches: &[Vec<Match>],
        history: &StoreHistory,
        index: &mut FingerprintIndex<W>,
        rules: &Rules,
    ) {
        let mut last_end = None;
        for found in matches
            .iter()
            .flatten()
            .filter(|found| !found.is_continuation)
        {
            let MatchSource::Store(start) = found.source else {
                continue;
            };
            let end = start + u64::from(found.length);
            self.visit(start, 1, history, index, rules);
            self.visit(end, PAGES_BEHIND, history, index, rules);
            if end <= history.earlier_bytes() {
                last_end = Some(end);
            }
        }
        if let Some(end) = last_end {
            self.visit(end, PAGES_AHEAD, history, index, rules);
        }
    }

    /// Inserts the anchors of so many pages from an offset on, as far as they are new.
    fn visit<W: IndexWords>(
        &mut self,
        offset_in_store: u64,
        pages: u64,
        history: &StoreHistory,
        index: &mut FingerprintIndex<W>,
        rules: &Rules,
    ) {
        for page in 0..pages {
            let offset = offset_in_store + page * PAGE_BYTES as u64;
            if offset >= history.earlier_bytes() {
                return;
            }
            if self.is_first_visit(offset) {
                self.insert(offset, history, index, rules);
                checkpoint();
            }
        }
    }

    fn is_first_visit(&mut self, offset_in_store: u64) -> bool {
        let page = offset_in_store / PAGE_BYTES as u64;
        let bit = 1 << (page % u64::from(u64::BITS));
        let Some(word) = self.seen.get_mut((page / u64::from(u64::BITS)) as usize) else {
            return false;
        };
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first
    }

    fn insert<W: IndexWords>(
        &mut self,
        offset_in_store: u64,
        history: &StoreHistory,
        index: &mut FingerprintIndex<W>,
        rules: &Rules,
    ) {
        let Some(page) = history.chunk(offset_in_store) else {
            return;
        };
        scan_segment((*page.bytes).as_ref(), rules, &mut self.scan);
        let positions = self.scan.positions.iter();
        let anchors = positions.zip(&self.scan.fingerprints);
        let anchors = anchors.map(|(&position, &fingerprint)| {
            (fingerprint, page.offset_in_store + u64::from(position))
        });
        index.insert_anchors(anchors, history.store_bytes(), checkpoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_visited_once() {
        let page = PAGE_BYTES as u64;
        let mut pages = EarlierPages::new(70 * page + 1);
        assert!(pages.is_first_visit(0) && !pages.is_first_visit(page - 1));
        assert!(pages.is_first_visit(70 * page) && !pages.is_first_visit(70 * page));
        assert!(!pages.is_first_visit(1 << 60), "beyond the store");
    }
}
