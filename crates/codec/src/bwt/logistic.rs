//! The logistic scale: probabilities as 16-bit fractions, and their log-odds as 1/256 natural units.
//! Mixing in this scale is Mahoney's ("Data Compression Explained", 4.3.2; PAQ7, 2005).
//!
//! The tables are computed by the compiler with integers only, so every machine has the same ones.

use crate::arithmetic::PROBABILITY_BITS;

/// Log-odds lie in -2047..=2047, which is odds of 1 to 2970.
pub(super) const STRETCH_MAX: i32 = 2047;
/// Entries of both tables.
const SIZE: usize = 4096;

/// e^(-1/256) as a 62-bit fraction.
const STEP: u128 = 4_593_706_758_521_714_574;
const ONE: u128 = 1 << 62;

static SQUASH: [u16; SIZE] = squash_table();
static STRETCH: [i16; SIZE] = stretch_table();

/// The probability (16-bit fraction) of log-odds `x`, -2047..=2047.
#[inline(always)]
pub(super) fn squash(x: i32) -> u32 {
    u32::from(SQUASH[((x + 2048) as usize) & (SIZE - 1)])
}

/// The log-odds of a 16-bit probability, to 12 bits of it.
#[inline(always)]
pub(super) fn stretch(probability: u16) -> i32 {
    i32::from(STRETCH[usize::from(probability >> 4)])
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

/// The inverse of `squash` at the middle of each step of 16.
const fn stretch_table() -> [i16; SIZE] {
    let squash = squash_table();
    let mut table = [0; SIZE];
    let mut x = 1;
    let mut index = 0;
    while index < SIZE {
        let p = (index * 16 + 8) as u32;
        while x < SIZE - 1 && (squash[x] as u32) < p {
            x += 1;
        }
        table[index] = (x as i32 - 2048) as i16;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_floating_point() {
        for x in -STRETCH_MAX..=STRETCH_MAX {
            let exact = 65536.0 / (1.0 + (-f64::from(x) / 256.0).exp());
            assert!((f64::from(squash(x)) - exact).abs() <= 1.0, "{x}");
        }
        for probability in (8..65536).step_by(16) {
            let p = f64::from(probability) / 65536.0;
            let limit = f64::from(STRETCH_MAX);
            let exact = ((p / (1.0 - p)).ln() * 256.0).clamp(-limit, limit);
            let found = f64::from(stretch(probability as u16));
            // Where squash is flat, one step of 16 spans many of log-odds.
            let tolerance = 1.0 + 256.0 * 8.0 / (65536.0 * p * (1.0 - p));
            assert!((found - exact).abs() <= tolerance, "{p}: {found} {exact}");
        }
    }

    #[test]
    fn tables_rise_and_are_symmetric() {
        for x in 1..=STRETCH_MAX {
            assert!(squash(x) >= squash(x - 1));
            assert_eq!(squash(x) + squash(-x), 1 << PROBABILITY_BITS);
        }
        assert_eq!(squash(0), 1 << 15);
        assert!(stretch(u16::MAX) <= STRETCH_MAX && stretch(0) >= -STRETCH_MAX);
    }
}
