//! The 64 steps of MD5, generic over the kind of word: a `u32`, or a vector of them.
//!
//! The dependency chain decides the speed of one hash: each step needs the result of the previous
//! one. The parts that do not depend on it are added early. With `b` as the newest word:
//!
//! - F(b, c, d) = d ^ (b & (c ^ d)): and, xor, add, rotate, add depend on `b`: 5 operations.
//! - G(b, c, d) = (d & b) + (!d & c): the two halves share no bit, so their "or" equals their sum,
//!   and the second half is added before `b` is known: and, add, rotate, add: 4.
//! - H(b, c, d) = b ^ (c ^ d): xor, add, rotate, add: 4.
//! - I(b, c, d) = c ^ (b | !d): or, xor, add, rotate, add: 5.
//!
//! This yields 16 * (5 + 4 + 4 + 5) = 288 dependent operations for 64 bytes. The sum for G is a
//! known technique; the steps, their functions and constants come from RFC 1321. Two alternatives
//! were slower by 1 to 6 % for one word: F as a sum, and I as a difference ((c ^ (!b & d)) is its
//! complement).
//!
//! The chain is this short only if the constants are not added at its end, where the compiler moves
//! them when it reorders sums (one fifth slower). Therefore the caller passes the constants in a
//! table whose content is hidden from the compiler ([`hidden_addends`]).

/// The state before the first block (RFC 1321, section 3.3).
pub(super) const INITIAL_STATE: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The constant that each step adds: `floor(2^32 * abs(sin(i + 1)))` (RFC 1321, section 3.4, table
/// T).
pub(super) static ADDENDS: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// Returns [`ADDENDS`] such that the compiler cannot use its content.
#[inline(always)]
pub(super) fn hidden_addends() -> &'static [u32; 64] {
    std::hint::black_box(&ADDENDS)
}

/// One word of 32 bits, or a vector of them. All sums are modulo 2^32.
pub(super) trait Word: Copy {
    /// Returns `value` in every lane.
    fn all(value: u32) -> Self;
    fn plus(self, other: Self) -> Self;
    /// Rotates left by `LEFT` bits; `RIGHT` is 32 - `LEFT`.
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self;
    /// Returns `self` + F(b, c, d): the bits of `c` where `b` is set, else those of `d`.
    fn plus_f(self, b: Self, c: Self, d: Self) -> Self;
    /// Returns `self` + G(b, c, d): the bits of `b` where `d` is set, else those of `c`.
    fn plus_g(self, b: Self, c: Self, d: Self) -> Self;
    /// Returns `self` + H(b, c, d): the parity.
    fn plus_h(self, b: Self, c: Self, d: Self) -> Self;
    /// Returns `self` + I(b, c, d): `c ^ (b | !d)`.
    fn plus_i(self, b: Self, c: Self, d: Self) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn all(value: u32) -> Self {
        value
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 32) };
        self.rotate_left(LEFT as u32)
    }
    #[inline(always)]
    fn plus_f(self, b: Self, c: Self, d: Self) -> Self {
        self.wrapping_add(d ^ (b & (c ^ d)))
    }
    #[inline(always)]
    fn plus_g(self, b: Self, c: Self, d: Self) -> Self {
        self.wrapping_add(!d & c).wrapping_add(d & b)
    }
    #[inline(always)]
    fn plus_h(self, b: Self, c: Self, d: Self) -> Self {
        self.wrapping_add(b ^ (c ^ d))
    }
    #[inline(always)]
    fn plus_i(self, b: Self, c: Self, d: Self) -> Self {
        self.wrapping_add(c ^ (b | !d))
    }
}

/// Returns the state after a block of 16 words (RFC 1321, section 3.4). `addends` is
/// [`hidden_addends`].
#[inline(always)]
pub(super) fn compress<W: Word>(state: [W; 4], words: &[W; 16], addends: &[u32; 64]) -> [W; 4] {
    let [mut a, mut b, mut c, mut d] = state;
    // Four steps, after which every word is new. `$word` is the index of the message word of the
    // first step, and `$stride` the distance to the next step's, modulo 16.
    macro_rules! four {
        ($plus:ident, $step:expr, $word:expr, $stride:expr, $($left:literal $right:literal),*) => {
            four!(@ $plus, [(a b c d) (d a b c) (c d a b) (b c d a)], $step, $word, $stride, [$(($left $right))*]);
        };
        (@ $plus:ident, [($a:ident $b:ident $c:ident $d:ident) $($names:tt)*], $step:expr, $word:expr, $stride:expr,
         [($left:literal $right:literal) $($turns:tt)*]) => {
            let addend = words[($word) % 16].plus(W::all(addends[$step]));
            $a = $a.plus(addend).$plus($b, $c, $d).rotated::<$left, $right>().plus($b);
            four!(@ $plus, [$($names)*], $step + 1, $word + $stride, $stride, [$($turns)*]);
        };
        (@ $plus:ident, [], $step:expr, $word:expr, $stride:expr, []) => {};
    }
    macro_rules! round {
        ($plus:ident, $step:expr, $word:expr, $stride:expr, $($turns:tt)*) => {
            four!($plus, $step, $word, $stride, $($turns)*);
            four!($plus, $step + 4, $word + 4 * $stride, $stride, $($turns)*);
            four!($plus, $step + 8, $word + 8 * $stride, $stride, $($turns)*);
            four!($plus, $step + 12, $word + 12 * $stride, $stride, $($turns)*);
        };
    }
    round!(plus_f, 0, 0, 1, 7 25, 12 20, 17 15, 22 10);
    round!(plus_g, 16, 1, 5, 5 27, 9 23, 14 18, 20 12);
    round!(plus_h, 32, 5, 3, 4 28, 11 21, 16 16, 23 9);
    round!(plus_i, 48, 0, 7, 6 26, 10 22, 15 17, 21 11);
    let [a0, b0, c0, d0] = state;
    [a.plus(a0), b.plus(b0), c.plus(c0), d.plus(d0)]
}

/// Compresses `blocks` into the state of one hash.
pub(super) fn compress_blocks(state: &mut [u32; 4], blocks: &[[u8; 64]]) {
    let addends = hidden_addends();
    for block in blocks {
        *state = compress(*state, &words_of(block), addends);
    }
}

#[inline(always)]
pub(super) fn words_of(block: &[u8; 64]) -> [u32; 16] {
    let (words, _) = block.as_chunks::<4>();
    std::array::from_fn(|index| u32::from_le_bytes(words[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addends_match_the_formula_of_the_rfc() {
        for (index, &addend) in ADDENDS.iter().enumerate() {
            let sine = ((index + 1) as f64).sin().abs();
            assert_eq!(
                addend,
                (sine * 4_294_967_296.0).floor() as u32,
                "step {index}"
            );
        }
    }

    #[test]
    fn functions_match_the_definitions_of_the_rfc() {
        // Each combination of three bits occurs in one position.
        let (b, c, d) = (0b0000_1111_u32, 0b0011_0011, 0b0101_0101);
        assert_eq!(7_u32.plus_f(b, c, d), 7_u32.wrapping_add(b & c | !b & d));
        assert_eq!(7_u32.plus_g(b, c, d), 7_u32.wrapping_add(b & d | c & !d));
        assert_eq!(7_u32.plus_h(b, c, d), 7_u32.wrapping_add(b ^ c ^ d));
        assert_eq!(7_u32.plus_i(b, c, d), 7_u32.wrapping_add(c ^ (b | !d)));
    }
}
