//! [`RangeSet`]: ranges of addresses, in bounded memory.

use std::ops::Range;

/// The first step when a set becomes coarser, in bytes.
const COARSE_BYTES: u64 = 4096;

/// The union of ranges that are added in any order.
///
/// It takes 16 bytes for each range that touches no other. When there are too many, it becomes
/// coarser: their ends are rounded, so that it has more addresses than were added, and never fewer.
#[derive(Debug)]
pub(crate) struct RangeSet {
    ranges: Vec<Range<u64>>,
    ranges_max: usize,
    /// All ends are multiples of this.
    granule_bytes: u64,
}

impl RangeSet {
    /// Within so many bytes of memory.
    pub(crate) fn within(memory_bytes: u64) -> RangeSet {
        let ranges_max = memory_bytes / size_of::<Range<u64>>() as u64;
        RangeSet {
            ranges: Vec::new(),
            ranges_max: (ranges_max as usize).max(2),
            granule_bytes: 1,
        }
    }

    pub(crate) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if (last.start..=last.end).contains(&range.start) => {
                last.end = last.end.max(range.end);
            }
            _ => {
                if self.ranges.len() >= self.ranges_max {
                    self.settle();
                    while self.ranges.len() > self.ranges_max / 2 {
                        self.granule_bytes = (self.granule_bytes * 2).max(COARSE_BYTES);
                        self.settle();
                    }
                }
                self.ranges.push(range);
            }
        }
    }

    /// Rounds, sorts and joins.
    fn settle(&mut self) {
        let granule = self.granule_bytes;
        for range in &mut self.ranges {
            range.start -= range.start % granule;
            range.end = range.end.div_ceil(granule).saturating_mul(granule);
        }
        self.ranges.sort_unstable_by_key(|range| range.start);
        self.ranges.dedup_by(|next, kept| {
            let touches = next.start <= kept.end;
            if touches {
                kept.end = kept.end.max(next.end);
            }
            touches
        });
    }

    /// The ranges, ascending, none of which touches another; and whether they are exact.
    pub(crate) fn into_ranges(mut self) -> (Vec<Range<u64>>, bool) {
        self.settle();
        (self.ranges, self.granule_bytes == 1)
    }
}

/// Ascending ranges, asked by ascending ranges.
pub(crate) struct RangeCursor<'a> {
    ranges: &'a [Range<u64>],
}

impl<'a> RangeCursor<'a> {
    /// Of ranges none of which touches another.
    pub(crate) fn new(ranges: &'a [Range<u64>]) -> RangeCursor<'a> {
        RangeCursor { ranges }
    }

    /// How many bytes of a range, which begins at or behind the ranges asked before, they have.
    pub(crate) fn common_bytes(&mut self, asked: Range<u64>) -> u64 {
        while let [first, rest @ ..] = self.ranges
            && first.end <= asked.start
        {
            self.ranges = rest;
        }
        let common = self
            .ranges
            .iter()
            .take_while(|range| range.start < asked.end);
        common
            .map(|range| range.end.min(asked.end) - range.start.max(asked.start))
            .sum()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use refrain_testkit::Rng;

    use super::*;

    #[test]
    fn a_set_is_the_union_of_what_was_added() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut set = RangeSet::within(1 << 20);
            let mut naive = [false; 2000];
            for _ in 0..rng.below(200) {
                let start = rng.below(1900);
                let end = start + rng.below(100);
                set.add(start..end);
                naive[start as usize..end as usize].fill(true);
            }
            let (ranges, is_exact) = set.into_ranges();
            assert!(is_exact);
            assert!(ranges.windows(2).all(|two| two[0].end < two[1].start));
            let mut found = [false; 2000];
            for range in &ranges {
                found[range.start as usize..range.end as usize].fill(true);
            }
            assert!(found == naive);
            let mut cursor = RangeCursor::new(&ranges);
            for start in (0..2000).step_by(50) {
                let in_set = naive[start..start + 50].iter().filter(|is_in| **is_in);
                let asked = start as u64..start as u64 + 50;
                assert_eq!(cursor.common_bytes(asked), in_set.count() as u64);
            }
        }
    }

    #[test]
    fn too_many_ranges_become_fewer_and_none_is_lost() {
        let mut set = RangeSet::within(16 * 16);
        let added: Vec<_> = (0..1000_u64)
            .rev()
            .map(|at| at * 10_000..at * 10_000 + 10)
            .collect();
        for range in &added {
            set.add(range.clone());
            assert!(set.ranges.len() <= 16);
        }
        let (ranges, is_exact) = set.into_ranges();
        assert!(!is_exact && ranges.len() <= 16);
        let is_in = |range: &Range<u64>| {
            ranges
                .iter()
                .any(|found| found.start <= range.start && range.end <= found.end)
        };
        assert!(added.iter().all(is_in));
        let mut one = RangeSet::within(0);
        [5..u64::MAX, 0..1, 3..4]
            .into_iter()
            .for_each(|range| one.add(range));
        assert_eq!(
            one.into_ranges().0.first().map(|range| range.start),
            Some(0)
        );
    }
}
