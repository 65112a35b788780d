//! Where the bytes of one archive's store are in another one.

use std::collections::BTreeMap;
use std::ops::Range;

use refrain_longmatch::{Extent, Pattern};

/// About what one range takes, in bytes.
const RANGE_BYTES: u64 = 64;

/// Where a range is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Store(u64),
    Fill(Box<Pattern>),
}

/// Ranges of one store, and where the other archive has their bytes.
#[derive(Debug, Default)]
pub(crate) struct StoreMap {
    /// By their starts: lengths and places.
    ranges: BTreeMap<u64, (u64, Place)>,
}

impl StoreMap {
    /// The bytes from `start` on, which are not in the map, are what this extent says, which is a
    /// copy or a fill.
    pub(crate) fn add(&mut self, start: u64, extent: &Extent) {
        let length = extent.length();
        let place = match extent {
            Extent::Copy {
                offset_in_store, ..
            } => Place::Store(*offset_in_store),
            Extent::Fill { pattern, .. } => Place::Fill(pattern.clone()),
            // These have no place of their own.
            Extent::Fresh { .. } | Extent::Known { .. } => return,
        };
        let before = self.ranges.range_mut(..start).next_back();
        if let Some((&first, (before, Place::Store(at)))) = before
            && first + *before == start
            && place == Place::Store(*at + *before)
        {
            *before += length;
            return;
        }
        self.ranges.insert(start, (length, place));
    }

    /// The extent for the first bytes of a range, as many as are at one place; `None` if the map
    /// does not have the first.
    pub(crate) fn extent(&self, range: Range<u64>) -> Option<Extent> {
        let (&start, (length, place)) = self.ranges.range(..=range.start).next_back()?;
        let inside = range.start - start;
        let left = length.checked_sub(inside).filter(|&left| left > 0)?;
        let length = left.min(range.end - range.start);
        Some(match place {
            Place::Store(offset) => Extent::Copy {
                length,
                offset_in_store: offset + inside,
            },
            Place::Fill(pattern) => Extent::Fill {
                length,
                pattern: Box::new(pattern.rotated(inside)),
            },
        })
    }

    /// Where the next range begins that the map has, at or behind `at`.
    pub(crate) fn next_start(&self, at: u64) -> Option<u64> {
        self.ranges.range(at..).next().map(|(&start, _)| start)
    }

    /// Forgets short ranges until the others fit into so much memory: their bytes will be searched
    /// for as new ones are.
    pub(crate) fn shrink_to(&mut self, memory_bytes: u64) {
        let most = (memory_bytes / RANGE_BYTES) as usize;
        let mut least = 64;
        while self.ranges.len() > most {
            self.ranges.retain(|_, (length, _)| *length >= least);
            least *= 2;
        }
    }
}

/// A set of ranges.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    /// Ends, by starts. None touches another.
    ranges: BTreeMap<u64, u64>,
}

impl Covered {
    /// Adds a range that has nothing in common with those that are there.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        let mut range = range;
        if let Some((&start, &end)) = self.ranges.range(..range.start).next_back()
            && end == range.start
        {
            range.start = start;
        }
        if let Some(end) = self.ranges.remove(&range.end) {
            range.end = end;
        }
        self.ranges.insert(range.start, range.end);
    }

    /// The end of the range that has this offset.
    pub(crate) fn end_at(&self, at: u64) -> Option<u64> {
        let (_, &end) = self.ranges.range(..=at).next_back()?;
        (end > at).then_some(end)
    }

    /// Where the next range begins, at or behind `at`.
    pub(crate) fn next_start(&self, at: u64) -> Option<u64> {
        self.ranges.range(at..).next().map(|(&start, _)| start)
    }
}

/// Where the content of one archive is in another one.
#[derive(Debug, Default)]
pub(crate) struct ContentMap {
    /// By their starts: lengths, and offsets in the other content.
    ranges: BTreeMap<u64, (u64, u64)>,
}

impl ContentMap {
    /// The content of a range begins at `to`. What is known of it stays.
    pub(crate) fn add(&mut self, range: Range<u64>, to: u64) {
        let mut at = range.start;
        while at < range.end {
            let (known, length) = self.place(at..range.end);
            if known.is_none() {
                self.add_new(at..at + length, to + (at - range.start));
            }
            at += length;
        }
    }

    fn add_new(&mut self, range: Range<u64>, to: u64) {
        let length = range.end - range.start;
        let before = self.ranges.range_mut(..range.start).next_back();
        if let Some((&first, (before, place))) = before
            && first + *before == range.start
            && *place + *before == to
        {
            *before += length;
            return;
        }
        self.ranges.insert(range.start, (length, to));
    }

    /// Where the first bytes of a range are, and for how many that holds; `None` if that is not
    /// known.
    pub(crate) fn place(&self, range: Range<u64>) -> (Option<u64>, u64) {
        let wanted = range.end - range.start;
        if let Some((&start, &(length, to))) = self.ranges.range(..=range.start).next_back()
            && range.start - start < length
        {
            let inside = range.start - start;
            return (Some(to + inside), wanted.min(length - inside));
        }
        let (start, next) = (range.start, self.ranges.range(range).next());
        let known_from = next.map_or(u64::MAX, |(&next, _)| next);
        (None, wanted.min(known_from - start))
    }

    /// Where all bytes of a range are, one behind the other.
    pub(crate) fn place_of_all(&self, range: Range<u64>) -> Option<u64> {
        let wanted = range.end - range.start;
        let (place, length) = self.place(range);
        place.filter(|_| length == wanted)
    }
}

#[cfg(test)]
mod tests {
    use refrain_testkit::Rng;

    use super::*;

    #[test]
    fn a_store_map_has_what_was_added() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut map = StoreMap::default();
            let mut covered = Covered::default();
            // For each byte: the offset in the other store, or the byte of a fill.
            let mut naive = vec![None; 3000];
            for _ in 0..200 {
                let start = rng.below(2900);
                let free = naive[start as usize..]
                    .iter()
                    .take_while(|byte| byte.is_none());
                let length = (free.count() as u64).min(1 + rng.below(60));
                if length == 0 {
                    continue;
                }
                let extent = if rng.below(4) == 0 {
                    let pattern = Box::new(Pattern::new(&[1, 2, 3]).unwrap());
                    Extent::Fill { length, pattern }
                } else {
                    let near = start + 100_000 * (start / 500);
                    Extent::Copy {
                        length,
                        offset_in_store: near,
                    }
                };
                for (at, byte) in (0..length).zip(&mut naive[start as usize..]) {
                    *byte = Some(byte_of(&extent, at));
                }
                map.add(start, &extent);
                covered.add(start..start + length);
            }
            let mut at = 0;
            while at < 3000 {
                let is_known = naive[at as usize].is_some();
                assert_eq!(covered.end_at(at).is_some(), is_known);
                let Some(extent) = map.extent(at..3000) else {
                    assert!(!is_known);
                    let next = naive[at as usize..].iter().position(Option::is_some);
                    let next = next.map(|next| at + next as u64);
                    assert_eq!(map.next_start(at), next);
                    assert_eq!(covered.next_start(at), next);
                    at += 1;
                    continue;
                };
                for inside in 0..extent.length() {
                    let expected = naive[(at + inside) as usize];
                    assert_eq!(Some(byte_of(&extent, inside)), expected);
                }
                assert!(covered.end_at(at).unwrap() >= at + extent.length());
                at += extent.length();
            }
            map.shrink_to(RANGE_BYTES * 5);
            assert!(map.ranges.len() <= 5);
        }
    }

    fn byte_of(extent: &Extent, at: u64) -> u64 {
        match extent {
            Extent::Copy {
                offset_in_store, ..
            } => offset_in_store + at,
            Extent::Fill { pattern, .. } => {
                let period = pattern.bytes();
                u64::from(period[at as usize % period.len()]) | 1 << 40
            }
            _ => unreachable!("is never in a map"),
        }
    }

    #[test]
    fn a_content_map_keeps_what_came_first() {
        let mut map = ContentMap::default();
        map.add(100..200, 1000);
        map.add(200..250, 1100);
        assert_eq!(map.ranges.len(), 1, "they continue one another");
        map.add(50..300, 5000);
        let places = [
            (50, Some(5000), 50),
            (100, Some(1000), 150),
            (250, Some(5200), 50),
        ];
        for (at, place, length) in places {
            assert_eq!(map.place(at..300), (place, length));
        }
        assert_eq!(map.place(0..300), (None, 50));
        assert_eq!(map.place(300..400), (None, 100));
        assert_eq!(map.place_of_all(120..240), Some(1020));
        assert_eq!(map.place_of_all(220..260), None);
    }
}
