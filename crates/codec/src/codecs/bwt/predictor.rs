//! Predicts one kind of binary decision from N contexts: a counter for each context, a logistic mix
//! of the counters, and a final refinement of the mix by a small context (an adaptive probability
//! map, also called secondary symbol estimation). All from Mahoney, "Data Compression Explained",
//! 4.1 to 4.3; here with integers only, so that predictions are the same on every machine.

use super::counter::{Counter, Steps};
use super::filled::filled;
use super::logistic::squash;
use super::mix::{INPUTS_MAX, Inputs, Weights};
use crate::arithmetic::{BinaryCoder, PROBABILITY_BITS};

/// The counters of one context, indexed by a `u16`, so no index can be out of bounds.
type Counters = [Counter; 1 << 16];
const COUNTER_START: Counter = 0;

/// Without the maps, source code becomes 0.3 % larger and decodes in 0.92 of the time. They have a
/// point for every 128 units of log odds: a map fills one cache line. Interpolating between points
/// saves 0.1 % and takes a tenth more time.
const POINT_SHIFT: u32 = 7;
const POINTS: usize = 4096 >> POINT_SHIFT;
const REFINEMENT_RATE: u32 = 6;

/// A predictor of one kind of decision from `N` contexts, with `SETS` sets of weights and `MAPS`
/// refinement maps (both powers of two). The arrays have fixed sizes: no index needs a check.
pub(super) struct Predictor<const N: usize, const SETS: usize, const MAPS: usize> {
    counters: Box<[Counters; N]>,
    weights: Box<[Weights; SETS]>,
    maps: Box<[[u16; POINTS]; MAPS]>,
}

pub(super) struct Contexts<const N: usize> {
    pub(super) slots: [u16; N],
    /// The set of weights, below `SETS`.
    pub(super) set: usize,
    /// The refinement map, below `MAPS`.
    pub(super) map: usize,
}

impl<const N: usize, const SETS: usize, const MAPS: usize> Predictor<N, SETS, MAPS> {
    pub(super) const MEMORY_BYTES: usize =
        N * size_of::<Counters>() + SETS * size_of::<Weights>() + MAPS * size_of::<[u16; POINTS]>();

    /// A predictor in its initial state. Returns `None` when memory cannot be allocated.
    pub(super) fn new() -> Option<Self> {
        const { assert!(N <= INPUTS_MAX && SETS.is_power_of_two() && MAPS.is_power_of_two()) };
        Some(Self {
            counters: filled([COUNTER_START; 1 << 16])?,
            weights: filled(Weights::start(N))?,
            maps: filled(identity_map())?,
        })
    }

    pub(super) fn reset(&mut self) {
        for counters in self.counters.iter_mut() {
            counters.fill(COUNTER_START);
        }
        self.weights.fill(Weights::start(N));
        self.maps.fill(identity_map());
    }

    /// Codes one decision and adapts to it. `steps` belong to the counters of each context.
    #[inline(always)]
    pub(super) fn code<C: BinaryCoder>(
        &mut self,
        coder: &mut C,
        contexts: &Contexts<N>,
        steps: [&Steps; N],
        bit: bool,
    ) -> bool {
        let weights = &mut self.weights[contexts.set & (SETS - 1)];
        let map = &mut self.maps[contexts.map & (MAPS - 1)];
        let mut inputs = [0; INPUTS_MAX];
        for (n, input) in inputs.iter_mut().take(N).enumerate() {
            *input = self.counters[n][usize::from(contexts.slots[n])];
        }
        let inputs = Inputs::new(inputs);
        let mixed = inputs.mix(weights);
        let mixed_probability = squash(mixed);
        let point = &mut map[point_of(mixed)];
        // The probability is never 0 or 1, since `squash` is not.
        let probability = (mixed_probability + u32::from(*point)) >> 1;

        let bit = coder.code(bit, probability);

        // The error has 15 bits and a sign, since training uses 16 bits.
        inputs.train(weights, (target(bit) - mixed_probability as i32) >> 1);
        adapt(point, target(bit), REFINEMENT_RATE);
        for (n, steps) in steps.into_iter().enumerate() {
            steps.learn(&mut self.counters[n][usize::from(contexts.slots[n])], bit);
        }
        bit
    }
}

/// The point of a map for log odds of -2048..=2047.
#[inline(always)]
fn point_of(log_odds: i32) -> usize {
    ((log_odds + 2048) as usize >> POINT_SHIFT) & (POINTS - 1)
}

/// The probability that fits a decision, as near to 0 or 1 as 16 bits allow.
#[inline(always)]
pub(super) fn target(bit: bool) -> i32 {
    if bit { (1 << PROBABILITY_BITS) - 1 } else { 0 }
}

/// Moves a probability towards `target` by 1 / 2^`rate` of the way.
#[inline(always)]
pub(super) fn adapt(probability: &mut u16, target: i32, rate: u32) {
    let now = i32::from(*probability);
    *probability = (now + ((target - now) >> rate)) as u16;
}

/// Each point has the probability of its middle.
fn identity_map() -> [u16; POINTS] {
    // At most 65508, which fits.
    std::array::from_fn(|index| squash(((2 * index as i32 + 1) << (POINT_SHIFT - 1)) - 2048) as u16)
}

#[cfg(test)]
mod tests {
    use super::super::counter::{FAST, SLOW};
    use super::*;
    use crate::arithmetic::{Decoder, Encoder};

    /// Codes decisions that follow the second of two contexts; the first one is random.
    fn code<C: BinaryCoder>(coder: &mut C, bits: &[bool]) -> Vec<bool> {
        let mut predictor = Predictor::<2, 4, 4>::new().unwrap();
        let mut before = false;
        let random = crate::test_data::random_bytes(bits.len(), 6);
        let coded = bits.iter().zip(random).map(|(&bit, random)| {
            let contexts = Contexts {
                slots: [u16::from(random), u16::from(before)],
                set: 9,
                map: usize::from(random),
            };
            before = predictor.code(coder, &contexts, [&FAST, &SLOW], bit);
            before
        });
        coded.collect()
    }

    #[test]
    fn learns_the_useful_context_and_decodes_the_same() {
        let alternating: Vec<bool> = (0..20_000).map(|n| n % 2 == 0).collect();
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
        assert_eq!(code(&mut encoder, &alternating), alternating);
        encoder.finish();
        assert!(out.len() < 100, "{}", out.len());
        let mut decoder = Decoder::new(&out);
        assert_eq!(code(&mut decoder, &vec![false; 20_000]), alternating);
        assert!(decoder.is_exhausted());
    }

    #[test]
    fn incompressible_decisions_grow_only_slightly() {
        let bytes = crate::test_data::random_bytes(2000, 2);
        let bits: Vec<bool> = (0..16_000)
            .map(|n| bytes[n / 8] >> (n % 8) & 1 != 0)
            .collect();
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
        code(&mut encoder, &bits);
        encoder.finish();
        assert!(out.len() > 2000 && out.len() < 2200, "{}", out.len());
    }
}
