//! Adaptive probabilities: the frequency of 1s, with fast adaptation at first and slow adaptation
//! later.

/// The bits of a probability in a counter; the rest counts updates.
const PROBABILITY_BITS: u32 = 22;
const COUNT_BITS: u32 = 32 - PROBABILITY_BITS;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;

/// The maximum number of updates counted.
pub(crate) const COUNT_MAX: u32 = COUNT_MASK;

/// 2^16 / (n + 1.5): the fraction of the error by which the n-th update moves the estimate.
static SHARE: [u16; COUNT_MASK as usize + 1] = share_table();

const fn share_table() -> [u16; COUNT_MASK as usize + 1] {
    let mut table = [0; COUNT_MASK as usize + 1];
    let mut count = 0;
    while count < table.len() {
        table[count] = ((1 << 17) / (2 * count as u32 + 3)) as u16;
        count += 1;
    }
    table
}

/// The probability of a 1, 22 bits, and the number of updates, 10 bits: the adaptive map of an
/// indirect context model (ICM in the ZPAQ specification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter(u32);

impl Counter {
    /// A counter that starts at a probability of 16 bits, as if after `count` updates.
    pub(crate) fn new(probability: u32, count: u32) -> Self {
        Self(probability << (32 - 16) | count.min(COUNT_MAX))
    }

    /// The probability of a 1, 16 bits.
    #[inline(always)]
    pub(crate) fn probability(self) -> u32 {
        self.0 >> 16
    }

    /// Updates the counter with one bit. After `limit` updates (at most `COUNT_MAX`), old ones
    /// fade.
    #[inline(always)]
    pub(crate) fn update(&mut self, bit: u32, limit: u32) {
        let count = self.0 & COUNT_MASK;
        let probability = (self.0 >> COUNT_BITS) as i32;
        let target = ((bit << PROBABILITY_BITS) as i32) - bit as i32;
        let share = i64::from(SHARE[count as usize]);
        let moved = (i64::from(target - probability) * share) >> 16;
        let probability = (probability + moved as i32) as u32;
        self.0 = probability << COUNT_BITS | (count + u32::from(count < limit));
    }
}

/// The probability of a 1, 32 bits, with a fixed rate: cheaper than a `Counter`, for maps that are
/// updated often and start from a good estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FixedRateCounter(u32);

impl FixedRateCounter {
    /// Starts at a probability of 16 bits.
    pub(crate) fn new(probability: u32) -> Self {
        Self(probability << 16)
    }

    /// The probability of a 1, 16 bits.
    #[inline(always)]
    pub(crate) fn probability(self) -> u32 {
        self.0 >> 16
    }

    /// Moves the estimate by `2^-shift` of the error.
    #[inline(always)]
    pub(crate) fn update(&mut self, bit: u32, shift: u32) {
        // All bits are 1 for a 1.
        let target = bit.wrapping_neg();
        self.0 = self.0 - (self.0 >> shift) + (target >> shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_converges_to_the_frequency_of_ones() {
        let mut counter = Counter::new(1 << 15, 0);
        for index in 0..3000_u32 {
            counter.update(u32::from(index % 4 == 0), 255);
        }
        assert!(counter.probability().abs_diff(1 << 14) < 300);
    }

    #[test]
    fn counter_stays_in_range() {
        for bit in 0..2 {
            let mut counter = Counter::new(1 << 15, 0);
            for _ in 0..100_000 {
                counter.update(bit, COUNT_MAX);
            }
            let end = if bit == 1 { 65_535 } else { 0 };
            assert!(counter.probability().abs_diff(end) <= 16, "{counter:?}");
        }
    }
}
