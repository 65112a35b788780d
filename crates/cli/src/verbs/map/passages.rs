//! Repeats as shown in a picture: adjacent extents form one passage, the largest passages are kept,
//! and all of them are counted by distance and by place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many passages are kept.
pub const PASSAGES_MAX: usize = 500;
/// The rows and columns of the matrix of places.
pub const MATRIX_SIZE: usize = 128;
/// Passages that may still be continued.
const OPEN_MAX: usize = 16;
/// Classes of distance per doubling.
const STEPS_PER_DOUBLING: u64 = 4;
const CLASSES: usize = 64 * STEPS_PER_DOUBLING as usize;

/// A stretch of content that repeats an earlier one, except for gaps too small to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage {
    /// The bytes of it that repeat; first, because passages are compared by them.
    pub repeated_bytes: u64,
    /// Where it starts and ends in the content.
    pub content_offset: u64,
    pub content_end: u64,
    /// Where the earlier stretch starts and ends in the content.
    pub source_offset: u64,
    pub source_end: u64,
}

/// Repeats at a range of distances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DistanceClass {
    /// The least distance, in bytes.
    pub from: u64,
    pub repeated_bytes: u64,
    pub extents: u64,
}

/// All repeats.
#[derive(Debug)]
pub struct Passages {
    /// Gaps and shifts up to this size do not end a passage.
    tolerance: u64,
    content_bytes: u64,
    open: Vec<Passage>,
    largest: BinaryHeap<Reverse<Passage>>,
    classes: Vec<DistanceClass>,
    /// Repeated bytes by place (row) and place of the first occurrence (column).
    matrix: Vec<u64>,
}

impl Passages {
    /// For content of this length, in a picture with this many columns.
    pub fn new(content_bytes: u64, columns: usize) -> Passages {
        Passages {
            tolerance: (content_bytes / (columns.max(1) as u64 * 2)).max(1 << 12),
            content_bytes: content_bytes.max(1),
            open: vec![],
            largest: BinaryHeap::new(),
            classes: vec![DistanceClass::default(); CLASSES],
            matrix: vec![0; MATRIX_SIZE * MATRIX_SIZE],
        }
    }

    /// Adds content that occurred first at `source_offset`.
    pub fn add(&mut self, content_offset: u64, length_bytes: u64, source_offset: u64) {
        let distance = content_offset.saturating_sub(source_offset);
        let class = &mut self.classes[class_of(distance)];
        class.repeated_bytes += length_bytes;
        class.extents += 1;
        let place = |offset: u64| {
            let place = u128::from(offset) * MATRIX_SIZE as u128 / u128::from(self.content_bytes);
            (place as usize).min(MATRIX_SIZE - 1)
        };
        let cell = place(content_offset) * MATRIX_SIZE + place(source_offset);
        self.matrix[cell] += length_bytes;

        let tolerance = self.tolerance;
        let continues = |open: &Passage| {
            let expected = content_offset.saturating_sub(open.content_end);
            let shift = source_offset.abs_diff(open.source_end.saturating_add(expected));
            expected <= tolerance && shift <= tolerance
        };
        let (content_end, source_end) = (
            content_offset.saturating_add(length_bytes),
            source_offset.saturating_add(length_bytes),
        );
        if let Some(number) = self.open.iter().rposition(continues) {
            let mut passage = self.open.remove(number);
            passage.repeated_bytes += length_bytes;
            passage.content_end = content_end;
            passage.source_offset = passage.source_offset.min(source_offset);
            passage.source_end = passage.source_end.max(source_end);
            self.open.push(passage);
            return;
        }
        if self.open.len() == OPEN_MAX {
            let oldest = self.open.remove(0);
            self.close(oldest);
        }
        self.open.push(Passage {
            repeated_bytes: length_bytes,
            content_offset,
            content_end,
            source_offset,
            source_end,
        });
    }

    fn close(&mut self, passage: Passage) {
        self.largest.push(Reverse(passage));
        if self.largest.len() > PASSAGES_MAX {
            self.largest.pop();
        }
    }

    /// Ends all passages.
    pub fn finish(&mut self) {
        for passage in std::mem::take(&mut self.open) {
            self.close(passage);
        }
    }

    /// The largest passages, in descending order.
    pub fn largest(&self) -> Vec<Passage> {
        let mut largest: Vec<Passage> = self.largest.iter().map(|passage| passage.0).collect();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        largest
    }

    /// Repeats by distance, one class per doubling, from the first to the last that has any.
    pub fn by_doubling(&self) -> Vec<DistanceClass> {
        let doublings = self.classes.chunks(STEPS_PER_DOUBLING as usize).enumerate();
        let mut classes: Vec<DistanceClass> = doublings
            .map(|(doubling, steps)| DistanceClass {
                from: 1 << doubling,
                repeated_bytes: steps.iter().map(|step| step.repeated_bytes).sum(),
                extents: steps.iter().map(|step| step.extents).sum(),
            })
            .collect();
        let used = |class: &DistanceClass| class.extents > 0;
        classes.truncate(classes.iter().rposition(used).map_or(0, |last| last + 1));
        let first = classes.iter().position(used).unwrap_or(0);
        classes.split_off(first)
    }

    /// The distance that half of the repeated bytes exceed, to a quarter of its value; `None`
    /// without repeats.
    pub fn median_distance(&self) -> Option<u64> {
        let total: u64 = self.classes.iter().map(|class| class.repeated_bytes).sum();
        let mut below = 0;
        let median = self.classes.iter().position(|class| {
            below += class.repeated_bytes;
            below > total / 2
        });
        median.map(class_start)
    }

    /// The non-empty cells of the matrix: place, place of the first occurrence, bytes.
    pub fn cells(&self) -> Vec<(usize, usize, u64)> {
        let cells = self.matrix.iter().enumerate();
        let used = cells.filter(|(_, bytes)| **bytes > 0);
        used.map(|(cell, bytes)| (cell / MATRIX_SIZE, cell % MATRIX_SIZE, *bytes))
            .collect()
    }
}

/// The class of a distance: the power of two below it, and the next two bits.
fn class_of(distance: u64) -> usize {
    let distance = distance.max(1);
    let doubling = u64::from(distance.ilog2());
    let step = match doubling {
        0 => 0,
        1 => (distance & 1) << 1,
        _ => distance >> (doubling - 2) & 3,
    };
    (doubling * STEPS_PER_DOUBLING + step) as usize
}

/// The least distance of a class.
fn class_start(class: usize) -> u64 {
    let (doubling, step) = (class / STEPS_PER_DOUBLING as usize, class as u64 % 4);
    (((4 + step) as u128) << doubling >> 2) as u64
}

#[cfg(test)]
mod tests {
    use refrain_testkit::Rng;

    use super::*;

    #[test]
    fn classes_of_distance_ascend_and_hold_what_they_say() {
        let mut random = Rng::new(1);
        for _ in 0..20_000 {
            let distance = (random.any() >> random.below(64)).max(1);
            let class = class_of(distance);
            assert!(class_start(class) <= distance, "{distance}");
            let next = class_start(class + 1);
            assert!(
                class + 1 == CLASSES || distance < next || distance < 8,
                "{distance}"
            );
        }
    }

    #[test]
    fn sums_by_distance_and_by_place_are_those_of_all_repeats() {
        let mut random = Rng::new(2);
        let mut passages = Passages::new(1 << 20, 100);
        let (mut naive, mut total, mut at) = (vec![0; 64], 0, 1 << 10);
        while at < 1 << 20 {
            let length = 1 + random.below(500);
            let source = random.below(at);
            passages.add(at, length, source);
            naive[(at - source).ilog2() as usize] += length;
            total += length;
            at += length + random.below(9);
        }
        passages.finish();
        for class in passages.by_doubling() {
            assert_eq!(class.repeated_bytes, naive[class.from.ilog2() as usize]);
        }
        let cells = passages.cells();
        assert_eq!(cells.iter().map(|cell| cell.2).sum::<u64>(), total);
        assert!(cells.iter().all(|(place, source, _)| source <= place));
        assert_eq!(passages.largest().len(), PASSAGES_MAX);
        assert!(passages.largest().is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn extents_that_continue_each_other_are_one_passage() {
        let mut passages = Passages::new(1 << 24, 1000);
        // Two alternating sources, with small gaps and edits.
        for step in 0..100 {
            let at = (8 << 20) + step * 2000;
            passages.add(at, 900, 1000 + step * 2001);
            passages.add(at + 950, 900, (4 << 20) + step * 2000);
        }
        passages.finish();
        let largest = passages.largest();
        assert_eq!(largest.len(), 2);
        assert!(
            largest
                .iter()
                .all(|passage| passage.repeated_bytes == 90_000)
        );
        let median = passages.median_distance().unwrap();
        assert!((3 << 20..=8 << 20).contains(&median), "{median}");
    }
}
