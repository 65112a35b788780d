//! Range variant of asymmetric numeral systems (Duda, arXiv 1311.2540), with states of 64 bits that
//! are refilled by words of 32 bits. Several states share a sequence of words, so that a processor
//! can work on them at the same time.

use crate::host::Host;

/// Frequencies are 4096ths.
pub(super) const SCALE_BITS: u32 = 12;
pub(super) const SCALE: u32 = 1 << SCALE_BITS;
/// States are at least this large between two symbols. The initial state of an encoder.
const STATE_MIN: u64 = 1 << 31;
/// The largest number of plain bits that are coded in one step.
const PLAIN_BITS_MAX: u32 = 16;
const WORD_BITS: u32 = u32::BITS;
/// States are below 2^63.
const STATE_BITS: u32 = 31 + WORD_BITS;
pub(super) const WORD_BYTES: usize = size_of::<u32>();

/// The part of 0..`SCALE` that stands for a symbol.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub frequency: u32,
    pub start: u32,
}

/// Reads words of four bytes, little-endian. Words after the end are 0.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    words: &'a [[u8; WORD_BYTES]],
    next: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(words: &'a [[u8; WORD_BYTES]]) -> Self {
        Self { words, next: 0 }
    }

    /// Whether every word was read, and none after the end.
    pub(super) fn is_exhausted(&self) -> bool {
        self.next == self.words.len()
    }

    /// Reads a state: two words, the low one first.
    pub(super) fn state(&mut self) -> State {
        let (mut low, mut high) = (0, 0);
        for word in [&mut low, &mut high] {
            *word = self.peek();
            self.next += 1;
        }
        State(low | high << WORD_BITS)
    }

    #[inline(always)]
    fn peek(&self) -> u64 {
        u64::from(
            self.words
                .get(self.next)
                .map_or(0, |word| u32::from_le_bytes(*word)),
        )
    }
}

/// The state of a decoder.
#[derive(Clone, Copy)]
pub(super) struct State(u64);

impl State {
    pub(super) fn is_initial(self) -> bool {
        self.0 == STATE_MIN
    }

    /// The number below `SCALE` that lies in the range of the next symbol.
    #[inline(always)]
    pub(super) fn slot(self) -> u32 {
        self.0 as u32 & (SCALE - 1)
    }

    /// Removes the symbol with this range, which contains `slot`.
    #[inline(always)]
    pub(super) fn advance(&mut self, range: Range, words: &mut Words<'_>) {
        let offset = u64::from(self.slot().wrapping_sub(range.start));
        self.0 = u64::from(range.frequency)
            .wrapping_mul(self.0 >> SCALE_BITS)
            .wrapping_add(offset);
        self.refill(words);
    }

    /// Removes `count` plain bits, at most twice `PLAIN_BITS_MAX`.
    #[inline(always)]
    pub(super) fn plain(&mut self, count: u32, words: &mut Words<'_>) -> u32 {
        if count > PLAIN_BITS_MAX {
            let high = self.few(count - PLAIN_BITS_MAX, words);
            return high << PLAIN_BITS_MAX | self.few(PLAIN_BITS_MAX, words);
        }
        self.few(count, words)
    }

    #[inline(always)]
    fn few(&mut self, count: u32, words: &mut Words<'_>) -> u32 {
        let bits = self.0 as u32 & ((1 << count) - 1);
        self.0 >>= count;
        self.refill(words);
        bits
    }

    #[inline(always)]
    fn refill(&mut self, words: &mut Words<'_>) {
        // Without a branch: whether a word is needed is hard to predict.
        let refilled = self.0 << WORD_BITS | words.peek();
        let needed = self.0 < STATE_MIN;
        self.0 = if needed { refilled } else { self.0 };
        words.next += usize::from(needed);
    }
}

/// Steps of an encoder between two check-ins.
const STEPS: usize = 32 << 10;

/// One step of an encoder.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Symbol { frequency: u16, start: u16 },
    Plain { count: u8, bits: u16 },
}

impl Step {
    pub(super) fn symbol(range: Range) -> Self {
        // Both are at most `SCALE`.
        Self::Symbol {
            frequency: range.frequency as u16,
            start: range.start as u16,
        }
    }

    /// Passes the steps of `count` plain bits to `emit`.
    pub(super) fn plain(count: u32, bits: u32, mut emit: impl FnMut(Self)) {
        let low = count.min(PLAIN_BITS_MAX);
        if count > low {
            emit(Self::Plain {
                count: (count - low) as u8,
                bits: (bits >> low) as u16,
            });
        }
        emit(Self::Plain {
            count: low as u8,
            bits: (bits & ((1 << low) - 1)) as u16,
        });
    }

    /// Adds the step to a state; `push` receives a word that must leave it before.
    fn apply(self, state: &mut u64, mut push: impl FnMut(u32)) {
        // The smallest state that would become too large.
        let limit = match self {
            Self::Symbol { frequency, .. } => u64::from(frequency) << (STATE_BITS - SCALE_BITS),
            Self::Plain { count, .. } => 1 << (STATE_BITS - u32::from(count)),
        };
        if *state >= limit {
            push(*state as u32);
            *state >>= WORD_BITS;
        }
        *state = match self {
            Self::Symbol { frequency, start } => {
                let frequency = u64::from(frequency);
                ((*state / frequency) << SCALE_BITS) + *state % frequency + u64::from(start)
            }
            Self::Plain { count, bits } => *state << count | u64::from(bits),
        };
    }
}

/// Sets `words` to what a decoder reads: two states, and the words that they need. `steps` are in
/// the order of decoding, each with the index of its state.
pub(super) fn encode(host: Host, steps: &[(u8, Step)], words: &mut Vec<u32>) {
    words.clear();
    let mut states = [STATE_MIN; 2];
    for piece in steps.rchunks(STEPS) {
        for &(index, step) in piece.iter().rev() {
            step.apply(&mut states[usize::from(index)], |word| words.push(word));
        }
        (host.check_in)();
    }
    for state in states.iter().rev() {
        words.push((state >> WORD_BITS) as u32);
        words.push(*state as u32);
    }
    words.reverse();
}
