//! The anchor scan with AVX2: sixteen positions at a time.
//!
//! `unsafe` for two operations: 32-byte loads from a slice without a bounds check for each load
//! (one check covers the 39 bytes that an iteration reads), and the call of a function that needs a
//! processor feature, after the feature was detected. The scan is one of the most expensive parts
//! of the match stage, so its speed matters.
//!
//! (A form with AVX-512 was tried and dropped: 1.4 to 1.8 times as fast on bytes that are in the
//! cache, but no significant difference in the whole match stage of two kernel trees: 3.80 to 3.88
//! s of processor time with it and 3.80 s without.)
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::window_hash::MULTIPLIERS;

/// Positions tested by one iteration.
const STEP: usize = 32;
/// Bytes read by one iteration: the last load starts at offset 7 and is 32 bytes long.
const READ: usize = 39;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// The positions found are passed to the callback in groups of about this many.
const GROUP: usize = 256;

/// Does the same as `select::positions` for a prefix of `bytes`. Returns the first position that
/// was not tested.
pub(super) fn positions(bytes: &[u8], threshold: i16, found: &mut impl FnMut(usize)) -> usize {
    assert!(is_available());
    let mut group = [0u32; GROUP + STEP];
    let mut position = 0;
    loop {
        // SAFETY: the feature was just detected.
        let (count, stop) = unsafe { fill_group(bytes, position, threshold, &mut group) };
        group[..count]
            .iter()
            .for_each(|&position| found(position as usize));
        if stop == position {
            return position;
        }
        position = stop;
    }
}

/// Tests positions from `position` until `group` is nearly full or the bytes end. Returns the
/// number of positions found and the position at which it stopped.
///
/// A step finds a position in one of four or eight cases, which no branch predictor can predict. So
/// the first position of a step is always written, and counted only if there was one; only a second
/// position in the same step takes a branch.
#[target_feature(enable = "avx2")]
fn fill_group(
    bytes: &[u8],
    mut position: usize,
    threshold: i16,
    group: &mut [u32; GROUP + STEP],
) -> (usize, usize) {
    let multipliers = MULTIPLIERS.map(|multiplier| _mm256_set1_epi16(multiplier as i16));
    let threshold = _mm256_set1_epi16(threshold);
    let mut count = 0;
    while bytes.len() - position >= READ && count < GROUP {
        // SAFETY: at least READ bytes follow `position`; the loads start at offsets 0 to 7 and read
        // 32 bytes.
        let words = |offset: usize| unsafe {
            debug_assert!(offset + 32 <= READ);
            _mm256_loadu_si256(bytes.as_ptr().add(position + offset).cast())
        };
        // Tests sixteen positions, every second one from `first`: a load at `first` holds the first
        // words of their windows.
        let are_below = |first: usize| {
            let product =
                |word: usize| _mm256_mullo_epi16(words(first + 2 * word), multipliers[word]);
            let (low, high) = (
                _mm256_add_epi16(product(0), product(1)),
                _mm256_add_epi16(product(2), product(3)),
            );
            _mm256_cmpgt_epi16(threshold, _mm256_add_epi16(low, high))
        };
        // One mask byte per position: the low bytes of the even positions, the high bytes of the
        // odd ones.
        let both = _mm256_blendv_epi8(are_below(0), are_below(1), _mm256_set1_epi16(-0x100));
        let below = _mm256_movemask_epi8(both) as u32;
        group[count] = (position as u32).wrapping_add(below.trailing_zeros());
        count += usize::from(below != 0);
        let mut others = below & below.wrapping_sub(1);
        while others != 0 {
            group[count] = position as u32 + others.trailing_zeros();
            count += 1;
            others &= others - 1;
        }
        position += STEP;
    }
    (count, position)
}
