//! Finds where a repeat resumes after a few differing bytes.
//!
//! Versions of a file differ in single words: a number in a text, an address in a program. After
//! such a word the repeat resumes at the same distance. This is the idea of repeated offsets in LZ
//! codecs (LZX, LZMA, zstd), here for distances beyond their windows.
#![forbid(unsafe_code)]

use crate::params::{RESUME_GAP_IN_TEXT_MAX, RESUME_GAP_MAX, RESUME_MIN, RESUME_MIN_IN_TEXT};

/// The number of bytes compared after the end of a repeat, in the segment and in the source.
pub(crate) const RESUME_WINDOW_BYTES: usize = RESUME_GAP_MAX + RESUME_MIN;
const _: () = assert!(RESUME_WINDOW_BYTES == u128::BITS as usize && RESUME_MIN.is_power_of_two());

/// Text has fewer control characters and bytes that never occur in UTF-8 than this among the
/// compared bytes.
const BINARY_BYTES_MIN: usize = 8;

/// Returns the length of the gap after which the two agree for [`RESUME_MIN`] bytes; `None` if it
/// is too long.
pub(crate) fn resume_gap(
    here: &[u8; RESUME_WINDOW_BYTES],
    source: &[u8; RESUME_WINDOW_BYTES],
) -> Option<usize> {
    let mut equal = equal_bytes(here, source);
    // Each step doubles the length of the runs of equal bytes that a bit stands for.
    for log in 0..RESUME_MIN.ilog2() {
        equal &= equal >> (1 << log);
    }
    let gap = equal.trailing_zeros() as usize;
    // Most gaps are too long for any data or short enough for text; only the others need the test
    // for text.
    let is_near = gap <= RESUME_GAP_IN_TEXT_MAX || (gap <= RESUME_GAP_MAX && !is_text(here));
    is_near.then_some(gap)
}

/// Returns a mask with one bit per byte, set where both bytes are equal. It handles eight bytes at
/// a time, which the compiler does not do by itself: the loop over single bytes took 3 % of the
/// match stage.
fn equal_bytes(a: &[u8; RESUME_WINDOW_BYTES], b: &[u8; RESUME_WINDOW_BYTES]) -> u128 {
    const LOW_BITS: u64 = u64::MAX / 0xFF * 0x7F;
    /// Moves bit `8 * i` to bit `56 + i`, for all `i` below 8; no two products overlap.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let words = a.as_chunks().0.iter().zip(b.as_chunks().0);
    words.enumerate().fold(0, |mask, (word, (a, b))| {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        // Sets the high bit of each byte that is not zero; the addition cannot carry into the next
        // byte.
        let high_bits = ((differing & LOW_BITS) + LOW_BITS) | differing;
        let equal = (!high_bits & !LOW_BITS) >> 7;
        mask | u128::from(equal.wrapping_mul(GATHER) >> 56) << (8 * word)
    })
}

/// Whether a part of `length` bytes after a gap is worth an extent; `here` is the content from the
/// beginning of the gap.
pub(crate) fn is_part_worth(length: usize, here: &[u8; RESUME_WINDOW_BYTES]) -> bool {
    length >= RESUME_MIN_IN_TEXT || !is_text(here)
}

pub(crate) fn is_text(bytes: &[u8; RESUME_WINDOW_BYTES]) -> bool {
    let is_binary = |byte: &&u8| **byte < b'\t' || **byte > 0xF4;
    bytes.iter().filter(is_binary).count() < BINARY_BYTES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a window of equal bytes, and the same window with its first `differing` bytes
    /// changed.
    fn pair(fill: u8, differing: usize) -> ([u8; RESUME_WINDOW_BYTES], [u8; RESUME_WINDOW_BYTES]) {
        let here = [fill; RESUME_WINDOW_BYTES];
        let mut source = here;
        source[..differing].fill(b'x');
        (here, source)
    }

    #[test]
    fn allows_longer_gaps_in_binary_data_than_in_text() {
        for differing in 0..=RESUME_WINDOW_BYTES {
            let found = |max: usize| (differing <= max).then_some(differing);
            let (here, source) = pair(b'a', differing);
            assert_eq!(resume_gap(&here, &source), found(RESUME_GAP_IN_TEXT_MAX));
            let (here, source) = pair(0, differing);
            assert_eq!(resume_gap(&here, &source), found(RESUME_GAP_MAX));
        }
    }

    #[test]
    fn equal_bytes_matches_the_byte_by_byte_reference() {
        let mut rng = refrain_testkit::Rng::new(1);
        for _ in 0..refrain_testkit::scaled(2000) {
            let mut next = || rng.below(4) as u8 * 85;
            let a: [u8; RESUME_WINDOW_BYTES] = std::array::from_fn(|_| next());
            let b: [u8; RESUME_WINDOW_BYTES] = std::array::from_fn(|_| next());
            let reference = (0..RESUME_WINDOW_BYTES)
                .fold(0u128, |mask, at| mask | u128::from(a[at] == b[at]) << at);
            assert_eq!(equal_bytes(&a, &b), reference);
        }
    }

    #[test]
    fn skips_agreement_shorter_than_the_minimum() {
        let (here, mut source) = pair(0, 60);
        source[10..10 + RESUME_MIN - 1].fill(0);
        assert_eq!(resume_gap(&here, &source), Some(60));
        source[10..10 + RESUME_MIN].fill(0);
        assert_eq!(resume_gap(&here, &source), Some(10));
    }
}
