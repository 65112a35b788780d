//! Adaptive distributions of 16 values. All shares of a distribution are averaged, searched and
//! adapted at once, in loops over arrays that compilers turn into vector instructions.

use std::hint::black_box;

use super::rans::{ONE, Share};

pub(super) const VALUES: usize = 16;

/// A distribution goes 1 / 2^`RATE` of the way to each value. Faster at first (1/2, 1/4, …) makes
/// blocks of 6 MB 0.15 % smaller.
const RATE: u32 = 5;
/// The largest start in a distribution. `Shares` adds 2 for each value.
const TOP: i16 = (ONE - 2 * VALUES as u32) as i16;

/// For each value the sum of the probabilities of smaller values: 0 to `TOP`, never falling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(32))]
pub(super) struct Distribution([i16; VALUES]);

impl Distribution {
    /// All values are equally probable.
    pub(super) const EVEN: Self = {
        let mut starts = [0; VALUES];
        let mut value = 0;
        while value < VALUES {
            starts[value] = value as i16 * (TOP / VALUES as i16);
            value += 1;
        }
        Self(starts)
    };

    #[inline(always)]
    pub(super) fn learn(&mut self, value: usize) {
        for (start, target) in self.0.iter_mut().zip(&TARGETS[value % VALUES]) {
            *start += (target - *start) >> RATE;
        }
    }
}

/// What the starts approach at each value: 0 up to that of the value, `TOP` above. Steps are
/// rounded down, so the latter targets are higher by what that loses.
static TARGETS: [[i16; VALUES]; VALUES] = {
    let mut targets = [[0; VALUES]; VALUES];
    let mut value = 0;
    while value < VALUES {
        let mut above = value + 1;
        while above < VALUES {
            targets[value][above] = TOP + ((1 << RATE) - 1);
            above += 1;
        }
        value += 1;
    }
    targets
};

/// The starts of the shares of all values, each 2 or more, then `ONE`; unsigned.
pub(super) struct Shares([i16; VALUES + 1]);

impl Shares {
    /// The average of four distributions.
    #[inline(always)]
    pub(super) fn of_four([a, b, c, d]: [&Distribution; 4]) -> Self {
        let mut starts = [ONE as i16; VALUES + 1];
        for (value, start) in starts.iter_mut().take(VALUES).enumerate() {
            let mean = mean(mean(a.0[value], b.0[value]), mean(c.0[value], d.0[value]));
            *start = mean + 2 * value as i16;
        }
        Self(starts)
    }

    /// The average of two distributions.
    #[inline(always)]
    pub(super) fn of_two([a, b]: [&Distribution; 2]) -> Self {
        let mut starts = [ONE as i16; VALUES + 1];
        for (value, start) in starts.iter_mut().take(VALUES).enumerate() {
            *start = mean(a.0[value], b.0[value]) + 2 * value as i16;
        }
        Self(starts)
    }

    #[inline(always)]
    pub(super) fn of(&self, value: usize) -> Share {
        let value = value % VALUES;
        let [start, end] = [self.0[value] as u16, self.0[value + 1] as u16];
        Share {
            start: start.into(),
            size: end.wrapping_sub(start).into(),
        }
    }

    /// The value whose share contains `point`, which is below `ONE`.
    #[inline(always)]
    pub(super) fn find(&self, point: u32) -> usize {
        let mut above = [0_u8; VALUES];
        for (above, &start) in above.iter_mut().zip(&self.0) {
            *above = u8::from(start > point as i16);
        }
        // By way of memory, since the compiler would count the bits of a mask one by one: decoding
        // then takes 1.3 times as long.
        let ones = u128::from_le_bytes(black_box(above));
        let eights = (ones as u64) + (ones >> u64::BITS) as u64;
        let count = eights.wrapping_mul(0x0101_0101_0101_0101) >> 56;
        // The first start is 0, so it is not above the point.
        (VALUES - 1).wrapping_sub(count as usize) % VALUES
    }
}

/// Rounded up, as the vector instruction for it does.
#[inline(always)]
fn mean(a: i16, b: i16) -> i16 {
    ((u32::from(a as u16) + u32::from(b as u16) + 1) >> 1) as i16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::random_bytes;

    fn checked(shares: &Shares) {
        let mut end = 0;
        for value in 0..VALUES {
            let share = shares.of(value);
            assert!(share.start == end && share.size >= 2, "{value}");
            end += share.size;
            for point in [share.start, end - 1] {
                assert_eq!(shares.find(point), value);
            }
        }
        assert_eq!(end, ONE);
    }

    #[test]
    fn shares_cover_the_range_whatever_is_learned() {
        let mut learned = [Distribution::EVEN; 4];
        checked(&Shares::of_four([&Distribution::EVEN; 4]));
        for (index, byte) in random_bytes(20_000, 5).into_iter().enumerate() {
            // Long periods of one value, then many values.
            let value = if index / 1000 % 2 == 0 { index / 1000 } else { byte.into() };
            learned[index % 4].learn(value);
            let [a, b, c, d] = &learned;
            checked(&Shares::of_four([a, b, c, d]));
            checked(&Shares::of_two([a, d]));
        }
    }

    #[test]
    fn learns_a_certain_value() {
        for value in 0..VALUES {
            let mut distribution = Distribution::EVEN;
            for _ in 0..1000 {
                distribution.learn(value);
            }
            let share = Shares::of_two([&distribution; 2]).of(value);
            assert!(share.size >= ONE - 2 * VALUES as u32, "{value}: {share:?}");
        }
    }
}
