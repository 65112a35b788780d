//! The fingerprint of an anchor: a 64-bit hash of the 64 bytes at its position.
//!
//! Multiply-and-fold of 16 bytes at a time, the mixing step published with wyhash (Wang Yi, public
//! domain), with constants of our own. It is not a cryptographic hash: every match is verified byte
//! by byte.
#![forbid(unsafe_code)]

use crate::params::FINGERPRINT_BYTES;

const SECRET: [u64; 8] = [
    0x243F_6A88_85A3_08D3,
    0x1319_8A2E_0370_7345,
    0xA409_3822_299F_31D1,
    0x082E_FA98_EC4E_6C89,
    0x4528_21E6_38D0_1377,
    0xBE54_66CF_34E9_0C6D,
    0xC0AC_29B7_C97C_50DD,
    0x3F84_D5B5_B547_0917,
];

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

/// Returns the hash of one window. The value is the same on every machine: words are read in
/// little-endian order.
#[inline]
pub(crate) fn fingerprint(window: &[u8; FINGERPRINT_BYTES]) -> u64 {
    let word = |index: usize| {
        let at = index * 8;
        u64::from_le_bytes([
            window[at],
            window[at + 1],
            window[at + 2],
            window[at + 3],
            window[at + 4],
            window[at + 5],
            window[at + 6],
            window[at + 7],
        ])
    };
    let pair = |index: usize| {
        fold(
            word(index) ^ SECRET[index],
            word(index + 1) ^ SECRET[index + 1],
        )
    };
    let mixed =
        pair(0) ^ pair(2).rotate_left(17) ^ pair(4).rotate_left(31) ^ pair(6).rotate_left(47);
    fold(mixed ^ SECRET[1], SECRET[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_the_window_changes_the_fingerprint() {
        let mut window = [0x5Au8; FINGERPRINT_BYTES];
        let before = fingerprint(&window);
        for bit in 0..FINGERPRINT_BYTES * 8 {
            window[bit / 8] ^= 1 << (bit % 8);
            let changed = (fingerprint(&window) ^ before).count_ones();
            assert!(
                (12..=52).contains(&changed),
                "bit {bit} changes {changed} bits"
            );
            window[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn the_value_is_pinned() {
        // Archives must not change with the compiler: this value is fixed.
        let window: [u8; FINGERPRINT_BYTES] = std::array::from_fn(|i| i as u8);
        assert_eq!(fingerprint(&window), PINNED);
    }
    const PINNED: u64 = 4_141_117_530_030_650_534;
}
