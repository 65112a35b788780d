//! The anchor scan with AVX2: sixteen positions at a time.
//!
//! `unsafe` because of one kind of operation: 32-byte loads from a slice without a bounds check each
//! (the check is made once for the 39 bytes that an iteration reads), and the call of a function that needs a
//! processor feature, which is made only after the feature was detected. The scan is one of the largest
//! parts of the match stage's time, so its speed pays.
//!
//! (A form with AVX-512, tried and left: 1.4 to 1.8 times as fast on bytes that are in the cache, no difference beyond noise in
//! the whole match stage of two kernel trees, 3.80 to 3.88 s of processor time with it and 3.80 s without.)
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::window_hash::MULTIPLIERS;

/// Positions tested by one iteration.
const STEP: usize = 32;
/// Bytes read by one iteration: the last load starts at 7 and is 32 bytes long.
const READ: usize = 39;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Found positions are handed over in groups of about so many.
const GROUP: usize = 256;

/// As `super::positions` for a prefix of `bytes`; returns the first position that was not tested.
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

/// Tests positions from `position` on until `group` is nearly full or the bytes end. Returns how many were found and
/// where it stopped.
///
/// A step finds one position in four or eight cases, which no processor can predict. So the first one found is always
/// written, and counted if it was there; only a second one in the same step takes a branch.
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
        // SAFETY: at least READ bytes lie from `position` on; the loads start at 0 to 7 and read 32 bytes.
        let words = |offset: usize| unsafe {
            debug_assert!(offset + 32 <= READ);
            _mm256_loadu_si256(bytes.as_ptr().add(position + offset).cast())
        };
        // Sixteen positions, every second one from `first` on: their words are what a load holds.
        let are_below = |first: usize| {
            let product =
                |word: usize| _mm256_mullo_epi16(words(first + 2 * word), multipliers[word]);
            let (low, high) = (
                _mm256_add_epi16(product(0), product(1)),
                _mm256_add_epi16(product(2), product(3)),
            );
            _mm256_cmpgt_epi16(threshold, _mm256_add_epi16(low, high))
        };
        // A byte of the mask for each position: the low bytes of the even ones, the high bytes of the odd ones.
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
