//! Finds sequences of an epoch's extents that earlier content also has. In the archive, a reference
//! to that content replaces them.
//!
//! Unchanged files of a tree's fiftieth version have all the fragments left of them by previous
//! versions. With references a version costs only its changes.

use std::collections::VecDeque;
use std::ops::Range;

use refrain_format::{REFERENCE_DEPTH_MAX, REFERENCE_WINDOW_MAX};
use refrain_longmatch::Extent;

/// The memory for each extent of the window, in bytes: its description, and its place in the table
/// of pairs.
const WINDOW_EXTENT_BYTES: u64 = 24;

/// The window of references may take 1/64 of the memory budget.
const WINDOW_SHARE: u64 = 64;

/// The maximum number of extents in a window: with more, a reader that cannot seek needs more
/// memory than they save.
const WINDOW_MAX: u64 = REFERENCE_WINDOW_MAX / 2;

/// How many of the latest extents references may refer to, in an archive written with this memory.
pub(crate) fn reference_window(memory_bytes: u64) -> u64 {
    (memory_bytes / WINDOW_SHARE / WINDOW_EXTENT_BYTES).min(WINDOW_MAX)
}

pub(crate) fn references_bytes(memory_bytes: u64) -> u64 {
    reference_window(memory_bytes) * WINDOW_EXTENT_BYTES
}

/// What a frame stores for a range of extents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// The extents themselves, by their numbers in the epoch.
    Direct(Range<usize>),
    /// Earlier content with the same extents.
    Reference { length: u64, offset_in_content: u64 },
}

/// The source of an extent; equal only for equal extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExtentSource {
    Store(u64),
    Zeros,
    /// Another fill, which is never equal.
    Other,
}

impl ExtentSource {
    fn is_same(self, other: ExtentSource) -> bool {
        self == other && self != ExtentSource::Other
    }

    fn number(self) -> u64 {
        match self {
            ExtentSource::Store(offset) => offset,
            ExtentSource::Zeros => u64::MAX,
            ExtentSource::Other => u64::MAX - 1,
        }
    }

    fn from_number(number: u64) -> ExtentSource {
        match number {
            u64::MAX => ExtentSource::Zeros,
            other if other == u64::MAX - 1 => ExtentSource::Other,
            offset => ExtentSource::Store(offset),
        }
    }
}

/// The extents of an earlier epoch.
struct Described {
    content_start: u64,
    first: u64,
    origins: Vec<u64>,
    /// The start of each, relative to the epoch; then the length of the epoch.
    starts: Vec<u32>,
    /// The depth of references to reach each.
    depths: Vec<u8>,
}

impl Described {
    fn len(&self) -> usize {
        self.origins.len()
    }

    fn origin(&self, index: usize) -> ExtentSource {
        ExtentSource::from_number(self.origins[index])
    }

    fn length(&self, index: usize) -> u32 {
        self.starts[index + 1] - self.starts[index]
    }

    fn start(&self, index: usize) -> u64 {
        self.content_start + u64::from(self.starts[index])
    }

    /// The hash of the extent at `index` and the next one.
    fn pair_hash(&self, index: usize) -> Option<u64> {
        (index + 1 < self.len()).then(|| {
            let one = |index: usize| {
                self.origins[index].wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    ^ u64::from(self.length(index))
            };
            let mixed = one(index).rotate_left(23) ^ one(index + 1);
            (mixed ^ mixed >> 29).wrapping_mul(0xD6E8_FEB8_6659_FD93)
        })
    }
}

/// The latest extents, and where pairs of them are.
pub(crate) struct ReferenceFinder {
    window: u64,
    epochs: VecDeque<Described>,
    /// The number of the next extent.
    next: u64,
    /// By the hash of a pair of extents: the number of its latest first one, plus 1. It grows with
    /// the number of extents, because its entries are spread over all of its memory.
    pairs: Vec<u32>,
    /// Where the extents after the last reference are expected.
    expected: u64,
}

#[derive(Clone, Copy, Default)]
struct Candidate {
    number: u64,
    count: usize,
}

impl ReferenceFinder {
    /// For a window of this many extents; 0 finds nothing.
    pub(crate) fn new(window: u64) -> ReferenceFinder {
        ReferenceFinder {
            window,
            epochs: VecDeque::new(),
            next: 0,
            pairs: vec![],
            expected: 0,
        }
    }

    /// Describes the extents of the next epoch by items, one list for each frame of up to
    /// `per_frame` extents. `store_start` is where its fresh bytes start.
    pub(crate) fn items(
        &mut self,
        content_start: u64,
        store_start: u64,
        extents: &[Extent],
        per_frame: usize,
    ) -> Vec<Vec<Item>> {
        let is_known = |extent: &Extent| matches!(extent, Extent::Known { .. });
        let has_known = extents.iter().any(is_known);
        let mut described = self.describe(content_start, store_start, extents);
        // A source must also be in the window of the epoch's last frame.
        self.evict(extents.len() as u64);
        let frames = (0..extents.len()).step_by(per_frame);
        let frames = frames
            .map(|first| {
                let end = extents.len().min(first + per_frame);
                self.items_of(&mut described, first..end)
            })
            .collect();
        // Known ranges stand for any number of extents: behind them, what is within the window is
        // unknown here.
        if has_known {
            self.epochs.clear();
            self.next += described.len() as u64;
        } else {
            self.add(described);
        }
        frames
    }

    /// Records an epoch with one extent, which neither repeats nor is repeated but counts in the
    /// window.
    pub(crate) fn skip_one(&mut self, content_start: u64) {
        self.add(Described {
            content_start,
            first: self.next,
            origins: vec![ExtentSource::Other.number()],
            starts: vec![0, 1],
            depths: vec![0],
        });
        self.expected += 1;
    }

    fn describe(&self, content_start: u64, store_start: u64, extents: &[Extent]) -> Described {
        let mut described = Described {
            content_start,
            first: self.next,
            origins: Vec::with_capacity(extents.len()),
            starts: Vec::with_capacity(extents.len() + 1),
            depths: vec![0; extents.len()],
        };
        let (mut at, mut fresh) = (0, store_start);
        for extent in extents {
            let origin = match extent {
                &Extent::Fresh { length } => {
                    fresh += length;
                    ExtentSource::Store(fresh - length)
                }
                &Extent::Copy {
                    offset_in_store, ..
                } => ExtentSource::Store(offset_in_store),
                Extent::Fill { pattern, .. } => match pattern.bytes() {
                    [0] => ExtentSource::Zeros,
                    _ => ExtentSource::Other,
                },
                Extent::Known { .. } => ExtentSource::Other,
            };
            described.origins.push(origin.number());
            described.starts.push(at);
            at += extent.length() as u32;
        }
        described.starts.push(at);
        described
    }

    /// Evicts the oldest epochs until `more` extents fit.
    fn evict(&mut self, more: u64) {
        while let Some(oldest) = self.epochs.front()
            && self.next - oldest.first + more > self.window
        {
            self.epochs.pop_front();
        }
    }

    fn items_of(&mut self, here: &mut Described, range: Range<usize>) -> Vec<Item> {
        let mut items: Vec<Item> = vec![];
        let mut at = range.start;
        while at < range.end {
            let found = self.best(here, at, range.end);
            let end = at + found.count.max(1);
            match self.source(found) {
                Some((epoch, index)) => {
                    items.push(Item::Reference {
                        length: u64::from(here.starts[end] - here.starts[at]),
                        offset_in_content: epoch.start(index),
                    });
                    let depths = &epoch.depths[index..index + found.count];
                    for (here, earlier) in here.depths[at..end].iter_mut().zip(depths) {
                        *here = earlier + 1;
                    }
                    self.expected = found.number + found.count as u64;
                }
                None => {
                    match items.last_mut() {
                        Some(Item::Direct(range)) => range.end = end,
                        _ => items.push(Item::Direct(at..end)),
                    }
                    self.expected += 1;
                }
            }
            at = end;
        }
        items
    }

    /// The longest reference for the extents starting at `at`.
    fn best(&self, here: &Described, at: usize, end: usize) -> Candidate {
        let expected = self.candidate(here, at..end, self.expected);
        let pair = here
            .pair_hash(at)
            .filter(|_| at + 1 < end)
            .and_then(|hash| self.pairs.get(slot(hash, self.pairs.len().wrapping_sub(1))))
            .and_then(|&number| self.number_of(number))
            .filter(|&number| number != self.expected)
            .map_or(Candidate::default(), |number| {
                self.candidate(here, at..end, number)
            });
        // A reference where expected takes a few bytes less, but a deep one soon ends.
        let is_longer = pair.count > expected.count
            || (pair.count == expected.count && self.is_deep(expected) && !self.is_deep(pair));
        if pair.count >= PAIR_MIN && is_longer { pair } else { expected }
    }

    fn is_deep(&self, candidate: Candidate) -> bool {
        let depth = self
            .source(candidate)
            .and_then(|(epoch, index)| epoch.depths.get(index));
        depth.is_some_and(|&depth| depth >= REFERENCE_DEPTH_MAX / 2)
    }

    /// The extent that a table entry stands for: the latest one with these low bits.
    fn number_of(&self, entry: u32) -> Option<u64> {
        let low = entry.checked_sub(1)?;
        let back = (self.next as u32).wrapping_sub(low);
        self.next.checked_sub(u64::from(back))
    }

    /// How many extents of `range` equal those starting at `number`.
    fn candidate(&self, here: &Described, range: Range<usize>, number: u64) -> Candidate {
        let Some((epoch, first)) = self.source(Candidate { number, count: 1 }) else {
            return Candidate::default();
        };
        let count = range
            .zip(first..epoch.len())
            .take_while(|&(at, index)| {
                here.length(at) == epoch.length(index)
                    && here.origin(at).is_same(epoch.origin(index))
                    && epoch.depths[index] < REFERENCE_DEPTH_MAX
            })
            .count();
        Candidate { number, count }
    }

    /// A candidate's epoch, and the index of its first extent there.
    fn source(&self, candidate: Candidate) -> Option<(&Described, usize)> {
        if candidate.count == 0 || candidate.number >= self.next {
            return None;
        }
        let after = self
            .epochs
            .partition_point(|epoch| epoch.first <= candidate.number);
        let epoch = self.epochs.get(after.checked_sub(1)?)?;
        Some((epoch, (candidate.number - epoch.first) as usize))
    }

    fn add(&mut self, described: Described) {
        if self.window == 0 {
            return;
        }
        self.next += described.len() as u64;
        self.epochs.push_back(described);
        self.evict(0);
        let first = self.epochs.front().map_or(self.next, |oldest| oldest.first);
        let wanted = ((self.next - first) as usize * 2)
            .next_power_of_two()
            .max(PAIRS_MIN);
        let first_new = if wanted > self.pairs.len() {
            // The old table is freed first.
            self.pairs = vec![];
            self.pairs.resize(wanted, 0);
            0
        } else {
            self.epochs.len().saturating_sub(1)
        };
        for index in first_new..self.epochs.len() {
            self.record_pairs(index);
        }
    }

    /// Enters the pairs of an epoch in the table.
    fn record_pairs(&mut self, epoch: usize) {
        let epoch = &self.epochs[epoch];
        let mask = self.pairs.len() - 1;
        for index in 0..epoch.len() {
            if let Some(hash) = epoch.pair_hash(index) {
                let number = epoch.first + index as u64;
                self.pairs[slot(hash, mask)] = (number as u32).wrapping_add(1);
            }
        }
    }
}

/// The minimum number of extents in a reference to an unexpected address.
const PAIR_MIN: usize = 2;

/// The initial number of entries of the table of pairs.
const PAIRS_MIN: usize = 1 << 10;

/// The entry of a pair in a table of `mask + 1` entries.
fn slot(hash: u64, mask: usize) -> usize {
    (hash >> 32) as usize & mask
}

#[cfg(test)]
mod tests {
    use refrain_format::Extent as FormatExtent;
    use refrain_longmatch::Pattern;
    use refrain_testkit::{ResolvedExtents, Rng, scaled};

    use super::*;

    fn to_format(extent: &Extent) -> FormatExtent {
        match extent {
            &Extent::Fresh { length } => FormatExtent::Fresh { length },
            &Extent::Copy {
                length,
                offset_in_store,
            } => FormatExtent::Copy {
                length,
                offset_in_store,
            },
            Extent::Known { .. } => panic!("no test has any"),
            Extent::Fill { length, pattern } => FormatExtent::Fill {
                length: *length,
                pattern: refrain_format::Pattern::new(pattern.bytes()).unwrap(),
            },
        }
    }

    /// Writes epochs and reads them with the reference implementation.
    struct Writer {
        finder: ReferenceFinder,
        naive: ResolvedExtents,
        window: u64,
        content_bytes: u64,
        store_bytes: u64,
    }

    impl Writer {
        fn new(window: u64) -> Writer {
            Writer {
                finder: ReferenceFinder::new(window),
                naive: ResolvedExtents::default(),
                window,
                content_bytes: 0,
                store_bytes: 0,
            }
        }

        /// Returns the number of written extents.
        fn epoch(&mut self, extents: &[Extent], per_frame: usize) -> usize {
            let (content_start, store_start) = (self.content_bytes, self.store_bytes);
            let frames = self
                .finder
                .items(content_start, store_start, extents, per_frame);
            let (mut count, mut first) = (0, 0);
            for items in frames {
                let mut written = vec![];
                for item in items {
                    match item {
                        Item::Direct(range) => written.extend(extents[range].iter().map(to_format)),
                        Item::Reference {
                            length,
                            offset_in_content,
                        } => written.push(FormatExtent::Reference {
                            length,
                            offset_in_content,
                        }),
                    }
                }
                count += written.len();
                let resolved = self
                    .naive
                    .epoch(self.content_bytes, &written, self.window)
                    .unwrap();
                let end = extents.len().min(first + per_frame);
                let expected: Vec<_> = extents[first..end].iter().map(to_format).collect();
                assert_eq!(resolved, expected);
                first = end;
                for extent in &expected {
                    self.content_bytes += extent.length();
                    if let FormatExtent::Fresh { length } = extent {
                        self.store_bytes += length;
                    }
                }
            }
            assert_eq!(first, extents.len());
            count
        }
    }

    fn random_extent(store_bytes: u64, rng: &mut Rng) -> Extent {
        let length = 1 + rng.below(50);
        match rng.below(12) {
            0 => Extent::Fill {
                length,
                pattern: Box::new(Pattern::new(&[0]).unwrap()),
            },
            1 => Extent::Fill {
                length,
                pattern: Box::new(Pattern::new(b"ab").unwrap()),
            },
            2..9 if store_bytes > 100 => Extent::Copy {
                length,
                offset_in_store: rng.below(store_bytes - length),
            },
            _ => Extent::Fresh { length },
        }
    }

    /// The extents of a version equal to an earlier one: fresh ones become copies.
    fn as_copies(extents: &[Extent], mut store_start: u64) -> Vec<Extent> {
        let copy = |extent: &Extent| match *extent {
            Extent::Fresh { length } => {
                store_start += length;
                Extent::Copy {
                    length,
                    offset_in_store: store_start - length,
                }
            }
            _ => extent.clone(),
        };
        extents.iter().map(copy).collect()
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(scaled(100)))]
        #[test]
        fn items_stand_for_the_same_extents_within_the_limits(
            seed: u64,
            window in 0_u64..2000,
            per_frame in 1_usize..200,
        ) {
            let mut rng = Rng::new(seed);
            let mut writer = Writer::new(window);
            let mut version: Vec<Extent> = vec![];
            for _ in 0..40 {
                let store_bytes = writer.store_bytes;
                for _ in 0..1 + rng.below(6) {
                    let at = rng.below(version.len() as u64 + 1) as usize;
                    let removed = (rng.below(4) as usize).min(version.len() - at);
                    let added: Vec<_> =
                        (0..rng.below(30)).map(|_| random_extent(store_bytes, &mut rng)).collect();
                    version.splice(at..at + removed, added);
                }
                version.push(Extent::Fresh { length: 3 });
                writer.epoch(&version, per_frame);
                version = as_copies(&version, store_bytes);
            }
        }
    }

    #[test]
    fn versions_cost_what_they_change() {
        let mut rng = Rng::new(3);
        let mut writer = Writer::new(20_000);
        let fresh = |length| Extent::Fresh { length };
        let mut version: Vec<_> = (0..1000).map(|_| fresh(1 + rng.below(50))).collect();
        writer.epoch(&version, 400);
        version = as_copies(&version, 0);
        let mut count = 0;
        for number in 0..100 {
            let store_bytes = writer.store_bytes;
            version[number * 10] = fresh(7);
            count += writer.epoch(&version, 400);
            version = as_copies(&version, store_bytes);
        }
        // A few for each version, and all of them again when they are too deep.
        assert!(count < 100 * 30 + 1000 * 100 / 16, "{count}");
        assert!(
            ReferenceFinder::new(0).items(0, 0, &version, 400).concat()
                == [
                    Item::Direct(0..400),
                    Item::Direct(400..800),
                    Item::Direct(800..1000)
                ]
        );
    }

    #[test]
    fn the_window_follows_from_the_memory() {
        assert_eq!(reference_window(128 << 20), 87_381);
        assert_eq!(reference_window(1 << 30), WINDOW_MAX);
        assert!(references_bytes(1 << 40) <= 16 << 20);
    }
}
