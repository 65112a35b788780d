//! Match model: finds the last place where the current context occurred and predicts what came
//! then (Mahoney, "Data Compression Explained", 4.2; MATCH in the ZPAQ specification).
//!
//! After a wrong prediction the model stays at its place and says so: behind edited text or a
//! changed constant the old passage often goes on. How far it is to be trusted is learned from its
//! last hits and misses and the length matched.

use super::counter::Counter;
use super::lanes::prefetch;
use super::logistic::stretch;

/// Lengths are counted up to here.
const LENGTH_MAX: u32 = 65_535;
/// A candidate is compared this far back at most.
const VERIFY_MAX: usize = 48;
/// Slots of a line, log2: which one is used depends on the last byte only.
const SLOTS_LOG: u32 = 4;
/// Length classes.
pub(crate) const LENGTH_CLASSES: usize = 16;
/// Contexts of trust in a match, whichever bit it predicts.
pub(crate) const TRUST_CONTEXTS: usize = LENGTH_CLASSES << MISS_BITS;
/// Kept outcomes of bytes predicted: bits, newest lowest, 1 is a miss.
const MISS_BITS: u32 = 3;
/// With this many misses of the last eight the place is given up.
const MISSES_MAX: u32 = 8;

/// What is known where a byte is predicted.
#[derive(Clone, Copy)]
pub(crate) struct PredictedByte {
    pub(crate) byte: u8,
    /// Class of the length matched.
    pub(crate) class: usize,
    /// Context of trust: length and misses.
    pub(crate) trust: usize,
}

/// One match model.
pub(crate) struct Match {
    /// Last position behind each hashed context.
    positions: Vec<u32>,
    line_mask: usize,
    /// Line of `positions` for the next context.
    line: usize,
    minimum_bytes: usize,
    /// Where the predicted byte lies; 0 means none.
    place: usize,
    length: u32,
    misses: u32,
    /// 256 plus the predicted byte while its bits held, else 0.
    predicted: u32,
    /// Trust by class of length, misses, and the predicted bit.
    trust: Vec<Counter>,
    /// Trust by predicted byte and the node in its bits.
    byte_trust: Vec<Counter>,
    /// Class of the length, and where the counters for this byte start.
    class: usize,
    trust_start: usize,
    byte_start: usize,
    /// Counters in use for this bit.
    used: usize,
    byte_used: usize,
}

impl Match {
    pub(crate) fn new(minimum_bytes: usize, positions_log: u32) -> Self {
        let half = Counter::new(1 << 15, 0);
        Self {
            positions: vec![0; 1 << positions_log],
            line_mask: (1 << (positions_log - SLOTS_LOG)) - 1,
            line: 0,
            minimum_bytes,
            place: 0,
            length: 0,
            misses: 0,
            predicted: 0,
            trust: vec![half; TRUST_CONTEXTS * 2],
            byte_trust: vec![half; 256 * 8 * 4],
            class: 0,
            trust_start: 0,
            byte_start: 0,
            used: 0,
            byte_used: 0,
        }
    }

    /// Class of the length matched, 0 without a prediction: for mixers.
    #[inline(always)]
    pub(crate) fn class(&self) -> usize {
        match self.predicted {
            0 => 0,
            _ => self.class,
        }
    }

    /// The predicted byte, when at least `minimum_bytes` match.
    #[inline(always)]
    pub(crate) fn guess(&self, minimum_bytes: u32) -> Option<PredictedByte> {
        if self.predicted == 0 || self.length < minimum_bytes {
            return None;
        }
        Some(PredictedByte {
            byte: self.predicted as u8,
            class: self.class,
            trust: self.trust_start,
        })
    }

    /// Drops the prediction of this byte: it is known to be wrong.
    #[inline(always)]
    pub(crate) fn rule_out(&mut self, byte: u8) {
        if self.predicted as u8 == byte {
            self.predicted = 0;
        }
    }

    /// Adds what the model says of the next bit to `inputs`: log odds by length and misses, and by
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
        self.used = self.trust_start << 1 | bit as usize;
        self.byte_used = self.byte_start + count as usize;
        let by_length = stretch(self.trust[self.used].probability());
        let by_byte = stretch(self.byte_trust[self.byte_used].probability());
        *inputs = [by_length as i16, by_byte as i16];
    }

    /// Learns the bit.
    #[inline(always)]
    pub(crate) fn update(&mut self, bit: u32) {
        if self.predicted != 0 {
            self.trust[self.used].update(bit, 1023);
            self.byte_trust[self.byte_used].update(bit, 255);
        }
    }

    /// Moves on to the next byte. `history` is all bytes so far; its last one was just coded.
    #[inline(always)]
    pub(crate) fn next_byte(&mut self, history: &[u8]) {
        self.follow(history);
        self.remember(history);
        self.predict_byte(history);
    }

    /// Moves on behind a byte that was sure. It is not remembered: the place that predicted it is.
    #[inline(always)]
    pub(crate) fn next_sure_byte(&mut self, history: &[u8]) {
        self.follow(history);
        self.find_line(history);
        self.predict_byte(history);
    }

    /// Takes one step in the old passage, and notes whether it held.
    #[inline(always)]
    fn follow(&mut self, history: &[u8]) {
        let position = history.len();
        if self.place > 0 {
            let hit = history[self.place] == history[position - 1];
            self.misses = (self.misses << 1 | u32::from(!hit)) & 0xFF;
            self.length = match hit {
                true => (self.length + 1).min(LENGTH_MAX),
                false => 0,
            };
            self.place += 1;
            if self.misses.count_ones() >= MISSES_MAX {
                self.place = 0;
            }
        }
    }

    /// Looks for a passage unless one is known, and remembers this place.
    #[inline(always)]
    fn remember(&mut self, history: &[u8]) {
        if history.len() < self.minimum_bytes {
            self.find_line(history);
            return;
        }
        let slot = self.slot(history);
        if self.length < self.minimum_bytes as u32 {
            self.look_up(slot, history);
        }
        self.positions[slot] = history.len() as u32;
        self.find_line(history);
    }

    /// Sets what the byte's bits are predicted from.
    #[inline(always)]
    fn predict_byte(&mut self, history: &[u8]) {
        if self.place == 0 {
            self.predicted = 0;
            return;
        }
        let byte = usize::from(history[self.place]);
        let recent_misses = self.misses as usize & ((1 << MISS_BITS) - 1);
        self.predicted = 256 | byte as u32;
        self.class = length_class(self.length);
        self.trust_start = self.class << MISS_BITS | recent_misses;
        self.byte_start = (self.class / 4 * 256 + byte) * 8;
    }

    /// Takes the remembered place if it matches far enough.
    fn look_up(&mut self, slot: usize, history: &[u8]) {
        let candidate = self.positions[slot] as usize;
        if candidate == 0 || candidate >= history.len() || candidate == self.place {
            return;
        }
        let length = common_suffix(&history[..candidate], history);
        if length >= self.minimum_bytes {
            self.place = candidate;
            self.length = length as u32;
            self.misses = 0;
        }
    }

    /// Slot of the context that `history` ends with. Its line was found one byte ago.
    #[inline(always)]
    fn slot(&self, history: &[u8]) -> usize {
        let last = history.last().copied().unwrap_or(0);
        let in_line = u32::from(last).wrapping_mul(0x9E37_79B1) >> (32 - SLOTS_LOG);
        self.line << SLOTS_LOG | in_line as usize
    }

    /// Finds the line of slots for the next byte and asks for it, so that it is here by then.
    #[inline(always)]
    fn find_line(&mut self, history: &[u8]) {
        let Some(start) = (history.len() + 1).checked_sub(self.minimum_bytes) else {
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

/// Length of what both end with, up to `VERIFY_MAX`.
fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev());
    pairs.take(VERIFY_MAX).take_while(|(x, y)| x == y).count()
}

/// Classes grow with the length, finely at first.
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

    /// Runs a model over `history`; returns how many bytes it predicted right and wrong.
    fn score(history: &[u8], minimum_bytes: usize) -> (usize, usize) {
        let mut model = Match::new(minimum_bytes, 12);
        let (mut right, mut wrong) = (0, 0);
        for position in 1..history.len() {
            model.next_byte(&history[..position]);
            if let Some(guess) = model.guess(0) {
                match guess.byte == history[position] {
                    true => right += 1,
                    false => wrong += 1,
                }
            }
        }
        (right, wrong)
    }

    #[test]
    fn repeats_are_followed_beyond_a_changed_byte() {
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
