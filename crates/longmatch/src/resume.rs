//! Where a repeat goes on behind a few bytes that differ.
//!
//! Versions of one thing differ in single words: a number in a text, an address in a program. Behind it the repeat goes on
//! at the same distance. The idea is that of repeated offsets in LZ codecs (LZX, LZMA, zstd), for distances beyond theirs.
#![forbid(unsafe_code)]

use crate::params::{RESUME_GAP_IN_TEXT_MAX, RESUME_GAP_MAX, RESUME_MIN};

/// Bytes that are looked at behind the end of a repeat, there and in its source.
pub(crate) const RESUME_LOOK_BYTES: usize = RESUME_GAP_MAX + RESUME_MIN;
const _: () = assert!(RESUME_LOOK_BYTES == u128::BITS as usize && RESUME_MIN.is_power_of_two());

/// Text has fewer control characters, and bytes that UTF-8 never has, than this among those looked at.
const BINARY_BYTES_MIN: usize = 8;

/// How many bytes after their start the two agree again for [`RESUME_MIN`] bytes, if near enough.
pub(crate) fn resume_gap(
    here: &[u8; RESUME_LOOK_BYTES],
    source: &[u8; RESUME_LOOK_BYTES],
) -> Option<usize> {
    let mut equal = here
        .iter()
        .zip(source)
        .enumerate()
        .fold(0u128, |mask, (at, (a, b))| mask | u128::from(a == b) << at);
    // Each step asks for runs twice as long.
    for log in 0..RESUME_MIN.ilog2() {
        equal &= equal >> (1 << log);
    }
    let gap = equal.trailing_zeros() as usize;
    let gap_max = match is_text(here) {
        true => RESUME_GAP_IN_TEXT_MAX,
        false => RESUME_GAP_MAX,
    };
    (gap <= gap_max).then_some(gap)
}

/// Whether the bytes look like text.
pub(crate) fn is_text(bytes: &[u8; RESUME_LOOK_BYTES]) -> bool {
    let is_binary = |byte: &&u8| **byte < b'\t' || **byte > 0xF4;
    bytes.iter().filter(is_binary).count() < BINARY_BYTES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of letters, and the same with `differing` bytes changed from the start on.
    fn pair(fill: u8, differing: usize) -> ([u8; RESUME_LOOK_BYTES], [u8; RESUME_LOOK_BYTES]) {
        let here = [fill; RESUME_LOOK_BYTES];
        let mut source = here;
        source[..differing].fill(b'x');
        (here, source)
    }

    #[test]
    fn the_gap_may_be_longer_in_programs_than_in_text() {
        for differing in 0..=RESUME_LOOK_BYTES {
            let found = |max: usize| (differing <= max).then_some(differing);
            let (here, source) = pair(b'a', differing);
            assert_eq!(resume_gap(&here, &source), found(RESUME_GAP_IN_TEXT_MAX));
            let (here, source) = pair(0, differing);
            assert_eq!(resume_gap(&here, &source), found(RESUME_GAP_MAX));
        }
    }

    #[test]
    fn short_agreement_is_passed_over() {
        let (here, mut source) = pair(0, 60);
        source[10..10 + RESUME_MIN - 1].fill(0);
        assert_eq!(resume_gap(&here, &source), Some(60));
        source[10..10 + RESUME_MIN].fill(0);
        assert_eq!(resume_gap(&here, &source), Some(10));
    }
}
