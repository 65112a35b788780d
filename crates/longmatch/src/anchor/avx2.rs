//! The anchor scan with AVX2: eight positions at a time.
//!
//! `unsafe` because of one kind of operation: sixteen-byte loads from a slice without a bounds check each
//! (the check is made once for the 48 bytes that an iteration reads), and the call of a function that needs a
//! processor feature, which is made only after the feature was detected. The scan is the largest single
//! part of the match stage's time, so its speed pays. Wider registers were tried by others on this kind of loop and lost (AVX-512 multiplies 32 bit lanes at half
//! the rate), so there is no AVX-512 form.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{MULTIPLIER_HIGH, MULTIPLIER_LOW};

/// Positions tested by one iteration.
const STEP: usize = 32;
/// Bytes read by one iteration: the last load starts at 32 and is 16 bytes long.
const READ: usize = 48;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Found positions are handed over in groups of about so many.
const GROUP: usize = 256;

/// As `super::positions` for a prefix of `bytes`; returns the first position that was not tested.
pub(super) fn positions(bytes: &[u8], threshold: i32, found: &mut impl FnMut(usize)) -> usize {
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
    threshold: i32,
    group: &mut [u32; GROUP + STEP],
) -> (usize, usize) {
    let multiplier_low = _mm256_set1_epi32(MULTIPLIER_LOW as i32);
    let multiplier_high = _mm256_set1_epi32(MULTIPLIER_HIGH as i32);
    let threshold = _mm256_set1_epi32(threshold);
    // The four-byte windows of positions 0..4 in the low lane and 4..8 in the high lane.
    let spread = _mm256_setr_epi8(
        0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7, 8,
        9, 10,
    );
    let mut count = 0;
    while bytes.len() - position >= READ && count < GROUP {
        // SAFETY: at least READ bytes lie from `position` on; the loads start at 0, 8, 16, 24, 32 and read 16 bytes.
        let windows = |offset: usize| unsafe {
            debug_assert!(offset + 16 <= READ);
            let sixteen = _mm_loadu_si128(bytes.as_ptr().add(position + offset).cast());
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(sixteen), spread)
        };
        let low = [
            windows(0),
            windows(8),
            windows(16),
            windows(24),
            windows(32),
        ];
        let mut below = 0u32;
        for eight in 0..STEP / 8 {
            // The high halves of positions 0..8 are the low halves of positions 4..12.
            let high = _mm256_permute2x128_si256::<0x21>(low[eight], low[eight + 1]);
            let hash = _mm256_add_epi32(
                _mm256_mullo_epi32(low[eight], multiplier_low),
                _mm256_mullo_epi32(high, multiplier_high),
            );
            let is_below = _mm256_cmpgt_epi32(threshold, hash);
            below |= (_mm256_movemask_ps(_mm256_castsi256_ps(is_below)) as u32) << (8 * eight);
        }
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
