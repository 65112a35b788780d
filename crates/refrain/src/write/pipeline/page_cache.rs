//! Decides which pages of the store stay in memory.
//!
//! Pages whose block is not yet encoded always stay. Some of the others stay because they were used
//! *recently*: repeats come in runs, and neighboring segments read the same pages. The rest of the
//! cache holds a *sample* of all pages: those with the lowest hashes of their numbers. When several
//! versions of something are compressed one after the other, the old pages are read from front to
//! back once per version. A cache of only the most recent pages, smaller than a version, would
//! evict each page shortly before it is read again, while a fixed sample serves its share of them.
//! (Measured on two kernel trees with 256 MiB for pages: most recently used alone 1.9 GB read
//! again, with the sample 1.56 GB.)
//!
//! The cache changes how long a run takes, never the bytes of the archive.

use std::collections::{BinaryHeap, VecDeque};

use crate::store::page::Page;

/// Groups of `2^GROUP_LOG` neighboring pages have the same rank, so that they are kept or evicted
/// together: then one long repeat needs few reads.
const GROUP_LOG: u32 = 4;

/// One page in `2^RECENT_LOG` of the cache is reserved for recently used pages.
const RECENT_LOG: u32 = 2;

#[derive(Default)]
struct CachedPage {
    page: Option<Page>,
    /// Whether the page was read since the clock hand passed it.
    is_used: bool,
    /// Whether the page is incompressible: then it does not enter the sample.
    is_incompressible: bool,
}

/// Pages in memory, by number.
pub(crate) struct PageCache {
    /// Number of the page in the first slot.
    first: u64,
    slots: VecDeque<CachedPage>,
    /// The numbers of recently used pages, by age; some may have been evicted.
    recent: VecDeque<u64>,
    recent_max: usize,
    /// The sample: the pages of lowest rank, as `(rank, number)`.
    sample: BinaryHeap<(u64, u64)>,
    sample_max: usize,
}

impl PageCache {
    /// A cache of `pages_max` pages in addition to pinned ones.
    pub(crate) fn new(pages_max: usize) -> PageCache {
        let recent_max = pages_max.div_ceil(1 << RECENT_LOG);
        PageCache {
            first: 0,
            slots: VecDeque::new(),
            recent: VecDeque::new(),
            recent_max,
            sample: BinaryHeap::new(),
            sample_max: pages_max - recent_max,
        }
    }

    /// Reduces the cache to `pages_max` recent pages, without a sample, which compressed copies
    /// replace.
    pub(crate) fn retain_recent_only(&mut self, pages_max: usize) {
        (self.recent_max, self.sample_max) = (pages_max, 0);
        self.shrink_sample();
        self.shrink();
    }

    /// Halves the cache for good. Returns whether it had room for a page before.
    pub(crate) fn halve(&mut self) -> bool {
        let had_room = self.recent_max + self.sample_max > 0;
        self.recent_max /= 2;
        self.sample_max /= 2;
        self.shrink();
        self.shrink_sample();
        had_room
    }

    /// The memory per page of the store, whether or not its bytes are in memory.
    pub(crate) const BYTES_PER_PAGE: usize = size_of::<CachedPage>();

    /// Adds the next page of the store, pinned until [`PageCache::release`].
    pub(crate) fn push(&mut self, page: Page) {
        self.slots.push_back(CachedPage {
            page: Some(page),
            ..CachedPage::default()
        });
    }

    /// The page, if it is in memory.
    pub(crate) fn get(&mut self, number: u64) -> Option<Page> {
        let slot = self.slot(number)?;
        slot.is_used = true;
        slot.page.clone()
    }

    /// Unpins the page. An incompressible page that was never read is evicted at once: such pages
    /// seldom repeat, and filling the cache with them costs more in fresh memory than it saves.
    /// They never enter the sample.
    pub(crate) fn release(&mut self, number: u64, is_incompressible: bool) {
        if let Some(slot) = self.slot(number) {
            slot.is_incompressible = is_incompressible;
            if is_incompressible && !slot.is_used {
                slot.page = None;
                return;
            }
        }
        self.add_recent(number);
    }

    fn add_recent(&mut self, number: u64) {
        self.recent.push_back(number);
        self.shrink();
    }

    /// Puts back an evicted page that was read again.
    pub(crate) fn put(&mut self, number: u64, page: Page) {
        if let Some(slot) = self.slot(number)
            && slot.page.is_none()
        {
            slot.page = Some(page);
            self.add_recent(number);
        }
    }

    /// Evicts the pages below `number`; they are not read again.
    pub(crate) fn evict_below(&mut self, number: u64) {
        if number <= self.first {
            return;
        }
        let count = ((number - self.first) as usize).min(self.slots.len());
        self.slots.drain(..count);
        self.first += count as u64;
        let first = self.first;
        self.recent.retain(|&page| page >= first);
        self.sample.retain(|&(_, page)| page >= first);
    }

    fn slot(&mut self, number: u64) -> Option<&mut CachedPage> {
        let index = number.checked_sub(self.first)?;
        self.slots.get_mut(usize::try_from(index).ok()?)
    }

    fn shrink(&mut self) {
        let has_room = self.recent_max > 0;
        while self.recent.len() > self.recent_max
            && let Some(number) = self.recent.pop_front()
        {
            let Some(slot) = self.slot(number) else {
                continue;
            };
            // A second chance for a page used since (the clock algorithm, Corbató 1968).
            if std::mem::take(&mut slot.is_used) && has_room {
                self.recent.push_back(number);
            } else if slot.is_incompressible {
                slot.page = None;
            } else {
                self.add_to_sample(number);
            }
        }
    }

    /// Adds the page to the sample and evicts the page of highest rank if the sample is full.
    fn add_to_sample(&mut self, number: u64) {
        self.sample.push((rank(number), number));
        self.shrink_sample();
    }

    fn shrink_sample(&mut self) {
        while self.sample.len() > self.sample_max
            && let Some((_, highest)) = self.sample.pop()
        {
            if let Some(slot) = self.slot(highest) {
                slot.page = None;
            }
        }
    }
}

/// The rank of a page, a hash of its group's number (the finalizer of SplitMix64: Steele, Lea,
/// Flood 2014).
pub(crate) fn rank(number: u64) -> u64 {
    let mut hash = (number >> GROUP_LOG).wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use refrain_pool::{BufferPool, PooledBuffer};

    use super::*;

    fn page() -> Page {
        let pool = Arc::new(BufferPool::new(16, 0));
        Arc::new(PooledBuffer::empty(&pool).expect("memory"))
    }

    /// A cache after a thousand pages.
    fn filled(pages_max: usize) -> PageCache {
        let mut cache = PageCache::new(pages_max);
        for number in 0..1000 {
            cache.push(page());
            cache.release(number, false);
        }
        cache
    }

    fn in_memory(cache: &PageCache) -> usize {
        let is_present = |slot: &&CachedPage| slot.page.is_some();
        cache.slots.iter().filter(is_present).count()
    }

    #[test]
    fn retains_no_more_than_allowed_besides_pinned_pages() {
        for pages_max in [0, 1, 2, 64, 1000] {
            let mut cache = PageCache::new(pages_max);
            for number in 0..3000 {
                cache.push(page());
                if number >= 10 {
                    cache.release(number - 10, false);
                    cache.get(number / 2);
                }
                assert!(in_memory(&cache) <= pages_max + 11, "{pages_max}: {number}");
            }
            (2990..3000).for_each(|number| cache.release(number, false));
            assert_eq!(in_memory(&cache), pages_max);
        }
    }

    #[test]
    fn evicts_pages_when_it_becomes_smaller() {
        let mut cache = filled(400);
        for pages_max in [300, 299, 40, 0] {
            cache.retain_recent_only(pages_max);
            assert_eq!(in_memory(&cache), pages_max.min(100));
        }
    }

    #[test]
    fn finds_the_sample_when_all_pages_are_read_in_order() {
        let mut cache = filled(400);
        for _ in 0..3 {
            let mut found = 0;
            for number in 0..1000 {
                match cache.get(number) {
                    Some(_) => found += 1,
                    None => cache.put(number, page()),
                }
            }
            assert!((250..450).contains(&found), "{found} of 1000");
        }
    }

    #[test]
    fn retains_a_page_that_is_used_repeatedly() {
        let mut cache = PageCache::new(100);
        cache.push(page());
        cache.release(0, false);
        for number in 1..5000 {
            assert!(cache.get(0).is_some(), "after {number} pages");
            cache.push(page());
            cache.release(number, false);
        }
    }

    #[test]
    fn retains_incompressible_pages_only_after_use_and_only_as_recent_pages() {
        let mut cache = PageCache::new(100);
        for number in 0..1000 {
            cache.push(page());
            cache.release(number, true);
        }
        assert_eq!(in_memory(&cache), 0);
        for number in 1000..2000 {
            cache.push(page());
            assert!(cache.get(number).is_some());
            cache.release(number, true);
        }
        assert_eq!(in_memory(&cache), cache.recent_max);
        assert!(cache.get(1999).is_some());
        cache.put(5, page());
        assert!(cache.get(5).is_some());
    }

    #[test]
    fn evicted_pages_leave_room_for_others() {
        let mut cache = filled(100);
        cache.evict_below(990);
        assert_eq!(cache.get(3).map(|_| ()), None);
        for number in 1000..1080 {
            cache.push(page());
            cache.release(number, false);
        }
        assert!((1000..1080).all(|number| cache.get(number).is_some()));
        cache.evict_below(5000);
        assert_eq!((in_memory(&cache), cache.first), (0, 1080));
    }
}
