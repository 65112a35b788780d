//! The logistic scale: probabilities as 16-bit fractions, and their log odds in 1/256 natural
//! units. Mixing in this scale is from Mahoney ("Data Compression Explained", 4.3.2; PAQ7, 2005).
//!
//! The table is computed at compile time with integers only, so it is the same on every machine.

use crate::arithmetic::PROBABILITY_BITS;

/// The entries of the table: log odds of -2048..=2047, which ends at odds of 1 to 2981.
const SIZE: usize = 4096;

/// e^(-1/256) as a 62-bit fraction.
const STEP: u128 = 4_593_706_758_521_714_574;
const ONE: u128 = 1 << 62;

static SQUASH: [u16; SIZE] = squash_table();

/// The probability (16-bit fraction, 22..=65513) of log odds `x`, -2048..=2047.
#[inline(always)]
pub(super) fn squash(x: i32) -> u32 {
    u32::from(SQUASH[((x + 2048) as usize) & (SIZE - 1)])
}

const fn squash_table() -> [u16; SIZE] {
    let mut table = [0; SIZE];
    // odds = e^(-x/256) for x = 0, 1, ...: p(x) = 1 / (1 + odds), p(-x) = 1 - p(x).
    let mut odds = ONE;
    let mut x = 0;
    while x <= SIZE / 2 {
        let p = ((ONE << PROBABILITY_BITS) / (ONE + odds)) as u32;
        if x < SIZE / 2 {
            table[SIZE / 2 + x] = p as u16;
        }
        table[SIZE / 2 - x] = ((1 << PROBABILITY_BITS) - p) as u16;
        odds = (odds * STEP) >> 62;
        x += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_matches_floating_point() {
        for x in -2048..=2047 {
            let exact = 65536.0 / (1.0 + (-f64::from(x) / 256.0).exp());
            assert!((f64::from(squash(x)) - exact).abs() <= 1.0, "{x}");
        }
    }

    #[test]
    fn table_is_rising_and_symmetric() {
        for x in -2047..=2047 {
            assert!(squash(x) >= squash(x - 1));
            assert_eq!(squash(x) + squash(-x), 1 << PROBABILITY_BITS);
        }
        assert_eq!(squash(0), 1 << 15);
        assert_eq!((squash(-2048), squash(2047)), (22, 65_513));
    }
}
