//! The hash that decides whether a position is an anchor.
#![forbid(unsafe_code)]

use crate::params::ANCHOR_WINDOW_BYTES;

/// Odd multipliers without structure (from the binary expansions of the golden ratio and of pi),
/// one for each of the four 16-bit words of a window.
pub(super) const MULTIPLIERS: [u16; WINDOW_WORDS] = [0x9E37, 0x79B1, 0x85A3, 0x08D3];
const WINDOW_WORDS: usize = ANCHOR_WINDOW_BYTES / 2;

/// The hash of a window, given as four little-endian words. Its high bits depend on all input bits.
///
/// The hash has 16 bits because sixteen positions then fit a vector register of 32 bytes without
/// shuffles, and a 16-bit product takes one multiplier step where a 32-bit product takes two. (Two
/// kernel trees, sampling profiles: 0.84 s of processor time in the scan with 32 bits, 0.39 s with
/// 16.) The cost: no threshold below 1 in 65,536 is possible.
#[inline(always)]
pub(super) fn window_hash(words: [u16; WINDOW_WORDS]) -> i16 {
    let products = words
        .iter()
        .zip(MULTIPLIERS)
        .map(|(word, multiplier)| word.wrapping_mul(multiplier));
    products.fold(0u16, u16::wrapping_add) as i16
}
