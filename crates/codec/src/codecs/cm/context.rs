//! The contexts in which bits are predicted, by kind of content: computed once per byte from the
//! preceding bytes.
//!
//! Orders, words, and sparse contexts are the same as in PAQ6 and later (Mahoney, "Data Compression
//! Explained", 4.3.2), which also describes columns and records.

use super::profile::Profile;

/// The state that the contexts are computed from.
#[derive(Default)]
pub(crate) struct ContextState {
    pub(crate) last: u64,
    /// The hash of the current word (letters, digits, `_`, bytes above 127); 0 outside a word.
    word: u32,
    /// The hashes of the words before it, newest first.
    words_before: [u32; 2],
    /// The hash of the word before the last `:` or `=`.
    key: u32,
    /// The position of the first byte of this line, and of the line before.
    line_start: usize,
    line_above: usize,
    /// The byte of the line above in the next column, 0 when that line is shorter.
    above: u32,
    line_head: u32,
    position: usize,
}

impl ContextState {
    #[inline(always)]
    pub(crate) fn next_byte(&mut self, history: &[u8]) {
        let position = history.len();
        let byte = history[position - 1];
        self.position = position;
        self.last = self.last << 8 | u64::from(byte);
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128 {
            self.word = (self.word.wrapping_add(u32::from(byte) + 1)).wrapping_mul(0x2F0B_4C47);
        } else {
            if self.word != 0 {
                self.words_before = [self.word, self.words_before[0]];
                self.word = 0;
            }
            if byte == b':' || byte == b'=' {
                self.key = self.words_before[0];
            }
        }
        if byte == b'\n' {
            self.line_above = self.line_start;
            self.line_start = position;
            self.line_head = 0;
        } else if position - self.line_start <= 4 {
            self.line_head = self.line_head << 8 | u32::from(byte);
        }
        let above = self.line_above + (position - self.line_start);
        self.above = if above < self.line_start { u32::from(history[above]) } else { 0 };
    }

    /// The hashes of the first `CONTEXTS` contexts of the profile.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    #[cfg_attr(target_family = "wasm", inline(never))]
    pub(crate) fn hashes<const CONTEXTS: usize>(
        &self,
        profile: Profile,
        history: &[u8],
    ) -> [u32; CONTEXTS] {
        let values = match profile {
            Profile::Text => self.text(),
            Profile::Binary => self.binary(),
            Profile::Record { stride_bytes } => self.record(history, stride_bytes),
        };
        std::array::from_fn(|index| hash(values[index], index as u32))
    }

    #[inline(always)]
    fn order(&self, count: u32) -> u64 {
        self.last & ((1 << (8 * count)) - 1)
    }

    #[inline(always)]
    fn text(&self) -> [u64; CONTEXTS_MAX] {
        let word = u64::from(self.word);
        let [before, before_that] = self.words_before.map(u64::from);
        let column = (self.position - self.line_start).min(255) as u64;
        let above = u64::from(self.above);
        let last = self.last & 0xFF;
        [
            self.order(2),
            self.order(3),
            self.order(4),
            self.order(6),
            word << 8 | last,
            self.order(5),
            word.wrapping_mul(0x9E37_79B1_85EB_CA77) ^ before << 8 ^ last,
            above << 16 | self.order(2),
            self.order(7),
            word << 8 ^ u64::from(self.key) << 32 ^ last,
            word << 8 ^ u64::from(self.line_head) << 32,
            self.last & 0x00FF_FF00,
            above << 16 | column << 8 | last,
            before.wrapping_mul(0x9E37_79B1_85EB_CA77) ^ before_that << 8 ^ word << 20,
            self.last & 0xFF_FFFF_0000,
            self.order(1) | column << 8,
        ]
    }

    #[inline(always)]
    fn binary(&self) -> [u64; CONTEXTS_MAX] {
        let phase = self.position as u64 & 3;
        [
            self.order(2),
            self.order(3),
            self.order(4),
            self.order(6),
            self.last & 0xFF_FF00,
            self.last & 0xFFFF_F0FF | 1 << 40,
            self.last & 0xF8F8_F8F8_F8F8,
            self.last & 0xFF00_0000 | phase,
            u64::from(self.word) << 8 | self.last & 0xFF,
            self.order(5),
            self.last & 0xFF_0000 | phase | 1 << 40,
            self.last & 0xFFFF_0000,
            self.last & 0xFF00_00FF_0000_0000 | phase,
            self.last & 0xFF00_FF00,
            self.last & 0xFFFF_FF00,
            self.order(1) | phase << 8,
        ]
    }

    #[inline(always)]
    fn record(&self, history: &[u8], stride_bytes: usize) -> [u64; CONTEXTS_MAX] {
        let position = history.len();
        let column = (position % stride_bytes) as u64;
        let above = |rows: usize| match position.checked_sub(rows * stride_bytes) {
            Some(at) => u64::from(history[at]),
            None => 0,
        };
        let (one, two) = (above(1), above(2));
        let last = self.last & 0xFF;
        [
            self.order(2),
            self.order(3),
            column << 8 | one,
            one << 8 | two,
            self.order(4),
            column << 16 | one << 8 | last,
            self.order(6),
            one << 16 | self.order(2),
            column << 8 | last,
            self.last & 0xFF_FF00,
            column << 16 | two << 8 | one,
            self.last & 0xFFFF_0000,
            self.last & 0xFF00_0000,
            one << 8 | last,
            self.order(5),
            u64::from(self.word) << 8 | last,
        ]
    }
}

pub(crate) const CONTEXTS_MAX: usize = 16;

/// The multiplicative hash of a context value; it depends on the context, too.
#[inline(always)]
pub(crate) fn hash(value: u64, context: u32) -> u32 {
    let mixed = (value ^ value >> 29)
        .wrapping_add(u64::from(context + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as u32
}
