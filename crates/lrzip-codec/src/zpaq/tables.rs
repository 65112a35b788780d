//! Logistic functions and bit histories, as the standard defines them.
//!
//! `exp` and `log` come from the crate libm instead of the system: the content of an archive must
//! not depend on how a platform rounds. The program also starts without loading another library.

use libm::{exp, floor, log};

/// The largest value in the logistic domain. The smallest is `-STRETCHED_MAX - 1`.
pub(crate) const STRETCHED_MAX: i32 = 2047;

pub(crate) struct Tables {
    squash: [u16; 4096],
    stretch: Box<[i16; 32768]>,
    /// Reciprocals for adaptive rates, indexed by count.
    pub(crate) rate: [i32; 1024],
    states: [[u8; 4]; 256],
}

impl Tables {
    pub(crate) fn new() -> Tables {
        let mut tables = Tables {
            squash: [0; 4096],
            stretch: Box::new([0; 32768]),
            rate: [0; 1024],
            states: state_table(),
        };
        for (index, value) in (-2048..2048).zip(&mut tables.squash) {
            *value = (32768.0 / (1.0 + exp(-f64::from(index) / 64.0))) as u16;
        }
        for (index, value) in (0..32768).zip(tables.stretch.iter_mut()) {
            let p = f64::from(index) + 0.5;
            // Rounded to nearest, halves upwards.
            *value = floor(log(p / (32768.0 - p)) * 64.0 + 0.5) as i16;
        }
        for (count, value) in (0..1024).zip(&mut tables.rate) {
            *value = (1 << 17) / (count * 2 + 3) * 2;
        }
        tables
    }

    /// Returns the probability, in units of 1/32768, for `x` in -2048..=2047.
    #[inline]
    pub(crate) fn squash(&self, x: i32) -> i32 {
        i32::from(self.squash[(x + 2048) as usize & 4095])
    }

    #[inline]
    pub(crate) fn stretch(&self, probability: u32) -> i32 {
        i32::from(self.stretch[probability as usize & 32767])
    }

    #[inline]
    pub(crate) fn next(&self, state: u8, bit: usize) -> u8 {
        self.states[usize::from(state)][bit]
    }

    /// Returns the probability of a one, in units of 2^-22, that a new model assigns to a bit
    /// history.
    pub(crate) fn initial(&self, state: u8) -> u32 {
        let [_, _, zeros, ones] = self.states[usize::from(state)].map(u32::from);
        ((ones * 2 + 1) << 22) / (zeros + ones + 1)
    }
}

#[inline]
pub(crate) fn clamp_stretched(x: i32) -> i32 {
    x.clamp(-STRETCHED_MAX - 1, STRETCHED_MAX)
}

/// Clamps a weight to 20 bits.
#[inline]
pub(crate) fn clamp_weight(x: i32) -> i32 {
    x.clamp(-(1 << 19), (1 << 19) - 1)
}

/// Returns the number of states for histories of `zeros` and `ones`: two if the state also records
/// the last bit.
fn state_count(zeros: i32, ones: i32) -> u8 {
    /// The largest value of the larger count, indexed by the smaller one.
    const BOUND: [i32; 6] = [20, 48, 15, 8, 6, 5];
    let (more, fewer) = (zeros.max(ones), zeros.min(ones));
    match usize::try_from(fewer)
        .ok()
        .and_then(|fewer| BOUND.get(fewer))
    {
        Some(&bound) if more <= bound => 1 + u8::from(fewer > 0 && more + fewer <= 17),
        _ => 0,
    }
}

/// Returns the reduced count of a bit after the other one occurred.
fn discounted(count: i32) -> i32 {
    [1, 2, 3, 4, 5, 7, 8]
        .iter()
        .map(|&step| i32::from(count >= step))
        .sum()
}

fn next_counts(zeros: i32, ones: i32, bit: usize) -> (i32, i32) {
    if zeros < ones {
        let (ones, zeros) = next_counts(ones, zeros, 1 - bit);
        return (zeros, ones);
    }
    let (mut zeros, mut ones) = match bit {
        1 => (discounted(zeros), ones + 1),
        _ => (zeros + 1, discounted(ones)),
    };
    // Reduces the counts to the nearest ones that have a state.
    while state_count(zeros, ones) == 0 {
        if ones < 2 {
            zeros -= 1;
        } else {
            zeros = (zeros * (ones - 1) + ones / 2) / ones;
            ones -= 1;
        }
    }
    (zeros, ones)
}

/// For each state: the next one after a zero, the next one after a one, the number of zeros, the
/// number of ones.
fn state_table() -> [[u8; 4]; 256] {
    const COUNTS: usize = 50;
    // The state of each pair of counts, indexed by the last bit.
    let mut numbers = [[[0u8; 2]; COUNTS]; COUNTS];
    let mut state = 0u8;
    let by_sum = (0..COUNTS).flat_map(|sum| (0..=sum).map(move |ones| (sum - ones, ones)));
    for (zeros, ones) in by_sum {
        let count = state_count(zeros as i32, ones as i32);
        if count > 0 {
            numbers[zeros][ones] = [state, state + count - 1];
            state = state.wrapping_add(count);
        }
    }
    let mut table = [[0; 4]; 256];
    let all = (0..COUNTS).flat_map(|zeros| (0..COUNTS).map(move |ones| (zeros, ones)));
    for (zeros, ones) in all {
        for last in 0..usize::from(state_count(zeros as i32, ones as i32)) {
            let next = |bit: usize| {
                let (zeros, ones) = next_counts(zeros as i32, ones as i32, bit);
                numbers[zeros as usize][ones as usize][bit]
            };
            let state = numbers[zeros][ones][last];
            table[usize::from(state)] = [next(0), next(1), zeros as u8, ones as u8];
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksums by which libzpaq verifies that floating point yields the tables of the
    /// standard.
    #[test]
    fn logistic_tables_match_the_checksums_of_the_standard() {
        let tables = Tables::new();
        let step = |sum: u32, value: i32| sum.wrapping_mul(3).wrapping_add(value as u32);
        let stretched = (0..32768)
            .rev()
            .fold(0, |sum, p| step(sum, tables.stretch(p)));
        let squashed = (0..4096)
            .rev()
            .fold(0, |sum, x| step(sum, tables.squash(x - 2048)));
        assert_eq!((stretched, squashed), (3_887_533_746, 2_278_286_169));
    }

    #[test]
    fn the_first_histories_match_the_standard() {
        let table = state_table();
        assert_eq!(table[0], [1, 2, 0, 0]);
        assert_eq!(table[1][2..], [1, 0]);
        assert_eq!(table[2][2..], [0, 1]);
        // There are 255 states; the last row is not used.
        assert!(table[1..255].iter().all(|row| row[2] + row[3] > 0));
        assert_eq!(table[255], [0; 4]);
    }
}
