//! Which pages of the store stay in memory.
//!
//! Pages whose block is not yet encoded always stay. Of the others some are kept for having been used *recently*: repeats
//! come in runs, and neighbouring segments ask for the same pages. The rest of the room holds a *sample* of all pages:
//! those whose number hashes lowest. Whoever packs one version of something after the other goes through the old
//! pages from front to back, once per version; a cache of the most recent ones alone, smaller than a version, would drop each
//! page just before it is wanted again, while a fixed sample serves its share of them. (Measured on two kernel trees with
//! 256 MiB for pages: most recently used alone 1.9 GB read again, with the sample 1.56 GB.)
//!
//! What is in memory changes how long things take, never what an archive looks like.

use std::collections::{BinaryHeap, VecDeque};

use crate::store::page::Page;

/// Neighbouring pages are kept or dropped together, `2^GROUP_LOG` of them: one long repeat then needs few reads.
const GROUP_LOG: u32 = 4;

/// One page in `2^RECENT_LOG` of the cache is there for having been used recently.
const RECENT_LOG: u32 = 2;

#[derive(Default)]
struct Slot {
    page: Option<Page>,
    /// Asked for since it was looked at last.
    is_used: bool,
    /// Not for the sample.
    is_noise: bool,
}

/// Pages in memory, by number.
pub(crate) struct PageCache {
    /// Number of the page in the first slot.
    first: u64,
    slots: VecDeque<Slot>,
    /// Pages used recently, by age; some of them may have been forgotten.
    recent: VecDeque<u64>,
    recent_max: usize,
    /// The sample: the pages of lowest rank, as `(rank, number)`.
    sample: BinaryHeap<(u64, u64)>,
    sample_max: usize,
}

impl PageCache {
    /// A cache of `pages_max` pages beside those that are pinned.
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

    /// From now on there is room for so many pages, all for recent ones: somebody else has a sample.
    pub(crate) fn keep_recent_only(&mut self, pages_max: usize) {
        (self.recent_max, self.sample_max) = (pages_max, 0);
        self.shrink_sample();
        self.shrink();
    }

    /// Bytes that each page of the store takes here, in memory or not.
    pub(crate) const BYTES_PER_PAGE: usize = size_of::<Slot>();

    /// The next page of the store, pinned until [`PageCache::release`].
    pub(crate) fn push(&mut self, page: Page) {
        self.slots.push_back(Slot {
            page: Some(page),
            ..Slot::default()
        });
    }

    /// The page, if it is in memory.
    pub(crate) fn get(&mut self, number: u64) -> Option<Page> {
        let slot = self.slot(number)?;
        slot.is_used = true;
        slot.page.clone()
    }

    /// From now on the page may be dropped. Pages of noise are, unless they were asked for: they repeat seldom, and filling the
    /// cache with them costs more in fresh memory than it could save. Nor do they go into the sample.
    pub(crate) fn release(&mut self, number: u64, is_noise: bool) {
        if let Some(slot) = self.slot(number) {
            slot.is_noise = is_noise;
            if is_noise && !slot.is_used {
                slot.page = None;
                return;
            }
        }
        self.keep_recent(number);
    }

    fn keep_recent(&mut self, number: u64) {
        self.recent.push_back(number);
        self.shrink();
    }

    /// A page that was dropped is in memory again.
    pub(crate) fn put(&mut self, number: u64, page: Page) {
        if let Some(slot) = self.slot(number)
            && slot.page.is_none()
        {
            slot.page = Some(page);
            self.keep_recent(number);
        }
    }

    /// Pages below `number` will not be asked for any more.
    pub(crate) fn forget_below(&mut self, number: u64) {
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

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
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
            // A second chance for what was used meanwhile (the clock algorithm, Corbató 1968).
            if std::mem::take(&mut slot.is_used) && has_room {
                self.recent.push_back(number);
            } else if slot.is_noise {
                slot.page = None;
            } else {
                self.offer(number);
            }
        }
    }

    /// Takes the page into the sample if it ranks low enough; one page too many leaves memory.
    fn offer(&mut self, number: u64) {
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

/// A hash of the page's group (the finalizer of SplitMix64: Steele, Lea, Flood 2014).
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

    /// A cache that has seen a thousand pages.
    fn filled(pages_max: usize) -> PageCache {
        let mut cache = PageCache::new(pages_max);
        for number in 0..1000 {
            cache.push(page());
            cache.release(number, false);
        }
        cache
    }

    fn in_memory(cache: &PageCache) -> usize {
        let there = |slot: &&Slot| slot.page.is_some();
        cache.slots.iter().filter(there).count()
    }

    #[test]
    fn no_more_than_allowed_is_kept_beside_what_is_pinned() {
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
    fn a_smaller_cache_lets_pages_go() {
        let mut cache = filled(400);
        for pages_max in [300, 299, 40, 0] {
            cache.keep_recent_only(pages_max);
            assert_eq!(in_memory(&cache), pages_max.min(100));
        }
    }

    #[test]
    fn going_through_all_pages_again_finds_the_sample() {
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
    fn what_is_used_again_and_again_stays() {
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
    fn noise_stays_only_if_it_is_asked_for_and_takes_only_the_room_of_recent_pages() {
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
    fn forgotten_pages_make_room() {
        let mut cache = filled(100);
        cache.forget_below(990);
        assert_eq!(cache.get(3).map(|_| ()), None);
        for number in 1000..1080 {
            cache.push(page());
            cache.release(number, false);
        }
        assert!((1000..1080).all(|number| cache.get(number).is_some()));
        cache.forget_below(5000);
        assert_eq!((in_memory(&cache), cache.first), (0, 1080));
    }
}
