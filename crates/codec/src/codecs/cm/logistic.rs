//! Probabilities and log odds: `squash` and `stretch`, as tables computed with integer arithmetic
//! at compile time, so that they are the same on every machine.
//!
//! Mixing in the logistic domain is from Mahoney 2005 ("Adaptive Weighing of Context Models for
//! Lossless Data Compression", Florida Tech CS-2005-16). Probabilities here have 16 bits where PAQ
//! has 12: after the match stage most bits are nearly certain, and a minimum of 1/4096 would cost
//! 0.003 bits for each of them.

/// Log odds have 8 fraction bits.
pub(crate) const LOGIT_ONE: i32 = 1 << 8;
/// The largest magnitude of the log odds of a mixer or an estimate: 12 - 1/256, a probability of
/// about 2^-17.
pub(crate) const LOGIT_LIMIT: i32 = 12 * LOGIT_ONE - 1;
/// The largest magnitude of the input of a mixer.
pub(crate) const INPUT_LIMIT: i32 = 8 * LOGIT_ONE - 1;

const SQUASH_ENTRIES: usize = (LOGIT_LIMIT as usize + 1) * 2;
/// `stretch` uses the upper 12 of 16 bits.
const STRETCH_ENTRIES: usize = 1 << 12;

/// The fraction bits of the fixed-point numbers from which the tables are computed.
const FRACTION_BITS: u32 = 60;

static SQUASH: [u16; SQUASH_ENTRIES] = squash_table();
static STRETCH: [i16; STRETCH_ENTRIES] = stretch_table();

/// The probability (16 bits, 1..=65535) of these log odds; log odds beyond the limit count as the
/// limit.
#[inline(always)]
pub(crate) fn squash(logit: i32) -> u32 {
    let index = (logit + LOGIT_LIMIT + 1).clamp(0, SQUASH_ENTRIES as i32 - 1);
    u32::from(SQUASH[index as usize])
}

/// The log odds of a 16-bit probability, within `INPUT_LIMIT`.
#[inline(always)]
pub(crate) fn stretch(probability: u32) -> i32 {
    i32::from(STRETCH[(probability >> 4) as usize & (STRETCH_ENTRIES - 1)])
}

/// e^(-1/256) by its power series.
const fn one_step() -> u128 {
    let one = 1_u128 << FRACTION_BITS;
    let (mut sum, mut term, mut k) = (one as i128, one as i128, 1);
    while k < 12 {
        term = -term / (256 * k);
        sum += term;
        k += 1;
    }
    sum as u128
}

/// 2^16 / (1 + e^-x), rounded, for x from -12 to 12 in steps of 1/256.
const fn squash_table() -> [u16; SQUASH_ENTRIES] {
    let mut table = [0_u16; SQUASH_ENTRIES];
    let one = 1_u128 << FRACTION_BITS;
    let step = one_step();
    let middle = SQUASH_ENTRIES / 2;
    let mut power = one; // e^(-k/256)
    let mut k = 0;
    while k <= middle {
        // The smaller side: e^-k / (1 + e^-k).
        let low = ((power << 16) + (one + power) / 2) / (one + power);
        let low = if low == 0 { 1 } else { low as u32 };
        table[middle - k] = low as u16;
        if middle + k < SQUASH_ENTRIES {
            table[middle + k] = (65536 - low) as u16;
        }
        power = (power * step) >> FRACTION_BITS;
        k += 1;
    }
    table
}

/// The inverse of `squash` at the middle of each of 4096 intervals.
const fn stretch_table() -> [i16; STRETCH_ENTRIES] {
    let squash = squash_table();
    let mut table = [0_i16; STRETCH_ENTRIES];
    let mut logit = -INPUT_LIMIT;
    let mut entry = 0;
    while entry < STRETCH_ENTRIES {
        let probability = (entry * 16 + 8) as u32;
        while logit < INPUT_LIMIT
            && (squash[(logit + LOGIT_LIMIT + 1) as usize] as u32) < probability
        {
            logit += 1;
        }
        table[entry] = logit as i16;
        entry += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squash_is_the_logistic_function() {
        for logit in -LOGIT_LIMIT..=LOGIT_LIMIT {
            let exact = 65536.0 / (1.0 + (-f64::from(logit) / 256.0).exp());
            let error = exact.clamp(1.0, 65535.0) - f64::from(squash(logit));
            assert!(error.abs() <= 0.5001, "{logit}: {error}");
        }
        assert_eq!(squash(i32::MAX / 2), squash(LOGIT_LIMIT));
        assert_eq!(squash(i32::MIN / 2), squash(-LOGIT_LIMIT));
        assert_eq!(squash(0), 32768);
    }

    #[test]
    fn stretch_inverts_squash() {
        for probability in 1..65536_u32 {
            let middle = f64::from(probability / 16 * 16 + 8) / 65536.0;
            let exact = ((middle / (1.0 - middle)).ln() * 256.0).clamp(-2047.0, 2047.0);
            let error = exact - f64::from(stretch(probability));
            // Near the ends squash is so flat that several odds have one probability.
            let per_unit = 256.0 / (65536.0 * middle * (1.0 - middle));
            assert!(
                error.abs() <= 1.0 + per_unit / 2.0,
                "{probability}: {error}"
            );
        }
        assert!((1..4096).all(|i| STRETCH[i] >= STRETCH[i - 1]));
    }
}
