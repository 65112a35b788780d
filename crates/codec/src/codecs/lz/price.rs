//! Prices: what a symbol costs, in 32nds of a bit.

use super::rans::{SCALE, SCALE_BITS};

/// The price of a plain bit.
pub(super) const BIT: u32 = 32;

/// The price of a symbol with this frequency, 1 to `SCALE`.
pub(super) fn of_frequency(frequency: u32) -> u16 {
    TABLE[frequency as usize]
}

static TABLE: [u16; SCALE as usize + 1] = table();

const fn table() -> [u16; SCALE as usize + 1] {
    let mut table = [0; SCALE as usize + 1];
    let mut frequency = 1;
    while frequency <= SCALE {
        table[frequency as usize] = (SCALE_BITS * BIT) as u16 - log2(frequency);
        frequency += 1;
    }
    table
}

/// The logarithm in 32nds, rounded down: squaring doubles it.
const fn log2(number: u32) -> u16 {
    let whole = number.ilog2();
    let mut mantissa = (number as u64) << (31 - whole);
    let mut result = whole as u16;
    let mut bit = BIT;
    while bit > 1 {
        mantissa = (mantissa * mantissa) >> 31;
        let carry = mantissa >> 32;
        mantissa >>= carry;
        result = result << 1 | carry as u16;
        bit >>= 1;
    }
    result
}
