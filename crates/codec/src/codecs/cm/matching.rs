//! A match model: finds the last occurrence of the current context and predicts the byte that
//! followed (Mahoney, "Data Compression Explained", 4.2; MATCH in the ZPAQ specification).
//!
//! After a wrong prediction the model stays at its position, with a record of the miss: after
//! edited text or a changed constant the earlier passage often continues. The probability that it
//! is right is learned for its last hits and misses and the length matched.

use super::counter::Counter;
use super::lanes::prefetch;
use super::logistic::stretch;

/// The largest length counted.
const LENGTH_MAX: u32 = 65_535;
/// The maximum length of the comparison of a candidate.
const VERIFY_MAX: usize = 48;
/// The slots of a line, log2. The last byte alone selects the slot.
const SLOTS_LOG: u32 = 4;
pub(crate) const LENGTH_CLASSES: usize = 16;
/// The contexts of a match, for either predicted bit.
pub(crate) const MATCH_CONTEXTS: usize = LENGTH_CLASSES << MISS_BITS;
/// The recorded results of predicted bytes: bits, newest lowest, 1 is a miss.
const MISS_BITS: u32 = 3;
/// With this many misses in the last eight bytes the position is dropped.
const MISSES_MAX: u32 = 8;

/// A predicted byte and the contexts of its prediction.
#[derive(Clone, Copy)]
pub(crate) struct PredictedByte {
    pub(crate) byte: u8,
    pub(crate) class: usize,
    /// The context: length and misses.
    pub(crate) context: usize,
}

pub(crate) struct MatchModel {
    /// The last position after each hashed context.
    positions: Vec<u32>,
    line_mask: usize,
    /// The line of `positions` for the next context.
    line: usize,
    minimum_bytes: usize,
    /// The position found for the context before the last byte, 0 for none. It is compared only
    /// now, when its cache line has arrived.
    candidate: usize,
    /// The position of the predicted byte; 0 means none.
    source: usize,
    length: u32,
    misses: u32,
    /// 256 plus the predicted byte while its bits are right, else 0.
    predicted: u32,
    /// Counters by class of length, misses, and the predicted bit.
    length_counters: Vec<Counter>,
    /// Counters by predicted byte and the node in its bits.
    byte_counters: Vec<Counter>,
    /// The class of the length, and the index of the first counter for this byte in each table.
    class: usize,
    length_start: usize,
    byte_start: usize,
    length_index: usize,
    byte_index: usize,
}

impl MatchModel {
    pub(crate) fn new(minimum_bytes: usize, positions_log: u32) -> Self {
        let half = Counter::new(1 << 15, 0);
        Self {
            positions: vec![0; 1 << positions_log],
            line_mask: (1 << (positions_log - SLOTS_LOG)) - 1,
            line: 0,
            minimum_bytes,
            candidate: 0,
            source: 0,
            length: 0,
            misses: 0,
            predicted: 0,
            length_counters: vec![half; MATCH_CONTEXTS * 2],
            byte_counters: vec![half; 256 * 8 * 4],
            class: 0,
            length_start: 0,
            byte_start: 0,
            length_index: 0,
            byte_index: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn class(&self) -> usize {
        match self.predicted {
            0 => 0,
            _ => self.class,
        }
    }

    /// The predicted byte, if at least `minimum_bytes` match.
    #[inline(always)]
    pub(crate) fn predicted_byte(&self, minimum_bytes: u32) -> Option<PredictedByte> {
        if self.predicted == 0 || self.length < minimum_bytes {
            return None;
        }
        Some(PredictedByte {
            byte: self.predicted as u8,
            class: self.class,
            context: self.length_start,
        })
    }

    /// Drops the prediction of this byte if it is `byte`, which is known to be wrong.
    #[inline(always)]
    pub(crate) fn rule_out(&mut self, byte: u8) {
        if self.predicted as u8 == byte {
            self.predicted = 0;
        }
    }

    /// Writes the predictions for the next bit to `inputs`: log odds by length and misses, and by
    /// predicted byte. `partial` is 1 followed by the `count` bits of the byte so far.
    #[inline(always)]
    pub(crate) fn predict(&mut self, partial: u32, count: u32, inputs: &mut [i16; 2]) {
        if self.predicted >> (8 - count) != partial {
            self.predicted = 0;
        }
        if self.predicted == 0 {
            *inputs = [0; 2];
            return;
        }
        let bit = self.predicted >> (7 - count) & 1;
        self.length_index = self.length_start << 1 | bit as usize;
        self.byte_index = self.byte_start + count as usize;
        let by_length = stretch(self.length_counters[self.length_index].probability());
        let by_byte = stretch(self.byte_counters[self.byte_index].probability());
        *inputs = [by_length as i16, by_byte as i16];
    }

    #[inline(always)]
    pub(crate) fn update(&mut self, bit: u32) {
        if self.predicted != 0 {
            self.length_counters[self.length_index].update(bit, 1023);
            self.byte_counters[self.byte_index].update(bit, 255);
        }
    }

    /// Advances to the next byte. `history` is all bytes so far; its last one was just coded.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    #[cfg_attr(target_family = "wasm", inline(never))]
    pub(crate) fn next_byte(&mut self, history: &[u8]) {
        self.follow(history);
        self.insert(history);
        self.predict_byte(history);
    }

    /// Advances past a byte that was coded by its flag. Its position is not inserted: its
    /// predictor's is.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    #[cfg_attr(target_family = "wasm", inline(never))]
    pub(crate) fn next_flagged_byte(&mut self, history: &[u8]) {
        self.follow(history);
        self.candidate = 0;
        self.find_line(history);
        self.predict_byte(history);
    }

    /// Advances in the earlier passage, and records whether it predicted the byte.
    #[inline(always)]
    fn follow(&mut self, history: &[u8]) {
        let position = history.len();
        if self.source > 0 {
            let hit = history[self.source] == history[position - 1];
            self.misses = (self.misses << 1 | u32::from(!hit)) & 0xFF;
            self.length = if hit { (self.length + 1).min(LENGTH_MAX) } else { 0 };
            self.source += 1;
            if self.misses.count_ones() >= MISSES_MAX {
                self.source = 0;
            }
        }
    }

    /// Searches for a passage unless there is one, and inserts the current position.
    #[inline(always)]
    fn insert(&mut self, history: &[u8]) {
        self.compare_candidate(history);
        if history.len() >= self.hashed_bytes() {
            let slot = self.slot(history);
            if self.length < self.minimum_bytes as u32 {
                self.candidate = self.positions[slot] as usize;
                prefetch(&history[self.candidate.min(history.len() - 1)]);
            }
            self.positions[slot] = history.len() as u32;
        }
        self.find_line(history);
    }

    /// The bytes that select a slot: one less than the shortest match, as a candidate is compared
    /// one byte later.
    #[inline(always)]
    fn hashed_bytes(&self) -> usize {
        self.minimum_bytes - 1
    }

    #[inline(always)]
    fn predict_byte(&mut self, history: &[u8]) {
        if self.source == 0 {
            self.predicted = 0;
            return;
        }
        let byte = usize::from(history[self.source]);
        let recent_misses = self.misses as usize & ((1 << MISS_BITS) - 1);
        self.predicted = 256 | byte as u32;
        self.class = length_class(self.length);
        self.length_start = self.class << MISS_BITS | recent_misses;
        self.byte_start = (self.class / 4 * 256 + byte) * 8;
    }

    /// Continues at the candidate of the byte before if it matches far enough.
    #[inline(always)]
    fn compare_candidate(&mut self, history: &[u8]) {
        let candidate = std::mem::take(&mut self.candidate);
        if candidate == 0 || self.length >= self.minimum_bytes as u32 {
            return;
        }
        let candidate = candidate + 1;
        if candidate == self.source {
            return;
        }
        let length = common_suffix(&history[..candidate], history);
        if length >= self.minimum_bytes {
            self.source = candidate;
            self.length = length as u32;
            self.misses = 0;
        }
    }

    /// The slot of the context at the end of `history`. Its line was found one byte before.
    #[inline(always)]
    fn slot(&self, history: &[u8]) -> usize {
        let last = history.last().copied().unwrap_or(0);
        let in_line = u32::from(last).wrapping_mul(0x9E37_79B1) >> (32 - SLOTS_LOG);
        self.line << SLOTS_LOG | in_line as usize
    }

    /// Finds the line of slots for the next byte and prefetches it.
    #[inline(always)]
    fn find_line(&mut self, history: &[u8]) {
        let Some(start) = (history.len() + 1).checked_sub(self.hashed_bytes()) else {
            return;
        };
        let mut hash = 0_u64;
        for &byte in &history[start..] {
            hash = hash
                .wrapping_add(u64::from(byte) + 1)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 32;
        }
        self.line = hash as u32 as usize & self.line_mask;
        prefetch(&self.positions[self.line << SLOTS_LOG]);
    }
}

/// The length of the common suffix, up to `VERIFY_MAX`.
fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev());
    pairs.take(VERIFY_MAX).take_while(|(x, y)| x == y).count()
}

/// The class of a length: finer for short lengths.
fn length_class(length: u32) -> usize {
    let class = match length {
        0 => 0,
        1..=15 => 1 + length / 4,
        16..=31 => 5 + (length - 16) / 8,
        32..=LENGTH_MAX => 7 + (length.ilog2() - 5),
        _ => 15,
    };
    (class as usize).min(LENGTH_CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a model over `history`; returns the numbers of right and wrong predictions.
    fn score(history: &[u8], minimum_bytes: usize) -> (usize, usize) {
        let mut model = MatchModel::new(minimum_bytes, 12);
        let (mut right, mut wrong) = (0, 0);
        for position in 1..history.len() {
            model.next_byte(&history[..position]);
            if let Some(predicted) = model.predicted_byte(0) {
                if predicted.byte == history[position] { right += 1 } else { wrong += 1 }
            }
        }
        (right, wrong)
    }

    #[test]
    fn continues_after_a_changed_byte() {
        let passage = crate::test_data::random_bytes(1000, 4);
        let mut history = [&passage[..], &passage[..]].concat();
        assert_eq!(score(&history, 6), (994, 0));
        history[1500] ^= 1;
        assert_eq!(score(&history, 6), (993, 1));
    }

    #[test]
    fn classes_rise_with_length() {
        let classes: Vec<usize> = (0..=LENGTH_MAX).map(length_class).collect();
        assert!(classes.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!((classes[0], classes[1]), (0, 1));
        assert_eq!(classes.last(), Some(&(LENGTH_CLASSES - 1)));
    }
}
