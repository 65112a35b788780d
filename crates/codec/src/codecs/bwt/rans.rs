//! Range asymmetric numeral systems (Duda 2009, arXiv 0902.0271), with states of 32 bits, words of
//! 16 bits and probabilities of 15 bits (after Giesen's `ryg_rans`, 2014). A decoded symbol costs
//! one multiplication and no division. Two states share one sequence of words, so that the
//! latencies of two symbols overlap.
//!
//! A decoder returns symbols in the reverse of the order in which they were encoded. So an encoder
//! collects the symbols of a segment first, and then encodes them from the last to the first.

const PROBABILITY_BITS: u32 = 15;
/// All probabilities together: shares are parts of this.
pub(super) const ONE: u32 = 1 << PROBABILITY_BITS;
/// The maximum bits of a number in `Share::of_number`.
pub(super) const NUMBER_BITS_MAX: u32 = PROBABILITY_BITS;

pub(super) const STATES: usize = 2;
/// States are at least this, and below 2^32.
const STATE_MIN: u32 = 1 << WORD_BITS;
const WORD_BITS: u32 = u16::BITS;
const WORD_BYTES: usize = size_of::<u16>();

/// The part of the range of probabilities that a symbol has: `size` is 1 to `ONE` - 1, and `start`
/// at most `ONE` - `size`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Share {
    pub(super) start: u32,
    pub(super) size: u32,
}

impl Share {
    /// The share of a number of 1 to `NUMBER_BITS_MAX` bits, all of which are equally probable.
    #[inline(always)]
    pub(super) fn of_number(number: u32, bits: u32) -> Self {
        let size = ONE >> bits;
        Self {
            start: number * size,
            size,
        }
    }
}

/// The symbols of one segment. Packed: the size of the share in bits 0 to 14, its start in 15 to
/// 29, the state in 30.
pub(super) struct Encoder {
    symbols: Vec<u32>,
    segment: Vec<u8>,
}

impl Encoder {
    pub(super) const fn memory_bytes(symbols: usize) -> usize {
        symbols * (size_of::<u32>() + WORD_BYTES) + STATES * size_of::<u32>()
    }

    /// An encoder for segments of at most this many symbols. `None` when memory cannot be
    /// allocated.
    pub(super) fn for_segments_of(symbols: usize) -> Option<Self> {
        let (mut list, mut segment) = (Vec::new(), Vec::new());
        list.try_reserve_exact(symbols).ok()?;
        segment
            .try_reserve_exact(symbols * WORD_BYTES + STATES * size_of::<u32>())
            .ok()?;
        Some(Self {
            symbols: list,
            segment,
        })
    }

    /// Forgets the symbols of an unfinished segment.
    pub(super) fn clear(&mut self) {
        self.symbols.clear();
    }

    #[inline(always)]
    pub(super) fn push(&mut self, state: usize, share: Share) {
        let state = (state % STATES) as u32;
        self.symbols
            .push(state << (2 * PROBABILITY_BITS) | share.start << PROBABILITY_BITS | share.size);
    }

    /// Ends the segment. Returns its bytes: the states with which a decoder starts, then the words.
    pub(super) fn finish(&mut self) -> &[u8] {
        self.segment.clear();
        let mut states = [STATE_MIN; STATES];
        for packed in self.symbols.drain(..).rev() {
            let state = &mut states[(packed >> (2 * PROBABILITY_BITS)) as usize % STATES];
            let (start, size) = (packed >> PROBABILITY_BITS & (ONE - 1), packed & (ONE - 1));
            if *state >> (u32::BITS - PROBABILITY_BITS) >= size {
                self.segment
                    .extend_from_slice(&(*state as u16).to_be_bytes());
                *state >>= WORD_BITS;
            }
            // Shares are not empty. The minimum spares a panic that never comes.
            let size = size.max(1);
            *state = (*state / size) << PROBABILITY_BITS | (*state % size + start);
        }
        for state in states.iter().rev() {
            self.segment.extend_from_slice(&state.to_be_bytes());
        }
        // Everything was written from the last byte to the first.
        self.segment.reverse();
        &self.segment
    }
}

/// Decodes the segments of some data. After its end, words are 0 and `is_overdrawn` returns true.
pub(super) struct Decoder<'a> {
    states: [u32; STATES],
    words: &'a [[u8; WORD_BYTES]],
    /// The number of words read, including those past the end.
    read: usize,
}

impl<'a> Decoder<'a> {
    /// `None` if the last word of `data` is not complete.
    pub(super) fn new(data: &'a [u8]) -> Option<Self> {
        let (words, rest) = data.as_chunks();
        rest.is_empty().then_some(Self {
            states: [STATE_MIN; STATES],
            words,
            read: 0,
        })
    }

    /// Reads the states of a new segment.
    pub(super) fn start_segment(&mut self) {
        for index in 0..STATES {
            let [low, high] = [self.word(), self.word_after()];
            self.states[index] = high << WORD_BITS | low;
            self.read += 2;
        }
    }

    /// The point of the range of probabilities that the share of the next symbol contains.
    #[inline(always)]
    pub(super) fn point(&self, state: usize) -> u32 {
        self.states[state % STATES] & (ONE - 1)
    }

    /// Removes the next symbol, whose share contains the point.
    #[inline(always)]
    pub(super) fn remove(&mut self, state: usize, share: Share) {
        let old = self.states[state % STATES];
        let point = old & (ONE - 1);
        // Numbers wrap only if the states of a damaged segment are too small.
        let new = share
            .size
            .wrapping_mul(old >> PROBABILITY_BITS)
            .wrapping_add(point.wrapping_sub(share.start));
        let word = self.word();
        let is_short = new < STATE_MIN;
        self.states[state % STATES] = if is_short { new << WORD_BITS | word } else { new };
        self.read += usize::from(is_short);
    }

    /// Whether the states are those with which an encoder starts, as at the end of a segment.
    pub(super) fn is_at_end_of_segment(&self) -> bool {
        self.states == [STATE_MIN; STATES]
    }

    /// Whether more words were read than there are.
    #[inline(always)]
    pub(super) fn is_overdrawn(&self) -> bool {
        self.read > self.words.len()
    }

    /// Whether exactly all words were read.
    pub(super) fn is_exhausted(&self) -> bool {
        self.read == self.words.len()
    }

    #[inline(always)]
    fn word(&self) -> u32 {
        let word = self.words.get(self.read);
        word.map_or(0, |&word| u16::from_le_bytes(word).into())
    }

    fn word_after(&self) -> u32 {
        let word = self.words.get(self.read + 1);
        word.map_or(0, |&word| u16::from_le_bytes(word).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::random_bytes;

    /// Symbols of all sizes of shares, and their states.
    fn symbols(count: usize) -> Vec<(usize, u32, u32)> {
        let random = random_bytes(4 * count, 3);
        let (fours, _) = random.as_chunks::<4>();
        let symbol = |&[state, bits, low, high]: &[u8; 4]| {
            let bits = 1 + u32::from(bits) % NUMBER_BITS_MAX;
            let number = u32::from(u16::from_le_bytes([low, high])) & ((1 << bits) - 1);
            (usize::from(state) % STATES, number, bits)
        };
        fours.iter().map(symbol).collect()
    }

    #[test]
    fn segments_round_trip() {
        let mut encoder = Encoder::for_segments_of(500).unwrap();
        let symbols = symbols(1700);
        let mut data = Vec::new();
        for segment in symbols.chunks(500) {
            for &(state, number, bits) in segment {
                encoder.push(state, Share::of_number(number, bits));
            }
            data.extend_from_slice(encoder.finish());
        }
        let mut decoder = Decoder::new(&data).unwrap();
        for segment in symbols.chunks(500) {
            decoder.start_segment();
            for &(state, number, bits) in segment {
                let found = decoder.point(state) >> (NUMBER_BITS_MAX - bits);
                assert_eq!(found, number);
                decoder.remove(state, Share::of_number(number, bits));
            }
            assert!(decoder.is_at_end_of_segment());
        }
        assert!(decoder.is_exhausted() && !decoder.is_overdrawn());
        let bits: u32 = symbols.iter().map(|&(_, _, bits)| bits).sum();
        assert!(data.len() * 8 < bits as usize + 4 * 64 + 100);
        assert!(Decoder::new(&data[1..]).is_none());
        let mut decoder = Decoder::new(&data[..6]).unwrap();
        decoder.start_segment();
        assert!(decoder.is_overdrawn());
    }
}
