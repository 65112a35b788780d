//! Predicts one kind of binary decision from N contexts: a counter for each context, a logistic mix
//! of what they say, and a last refinement of the mix by a small context (an adaptive probability map,
//! also called secondary symbol estimation). All from Mahoney, "Data Compression Explained", 4.1 to
//! 4.3; here with integers only, so that every machine predicts the same.

use super::logistic::{STRETCH_MAX, squash, stretch};
use crate::arithmetic::{BinaryCoder, PROBABILITY_BITS};

/// Counters of one context: indexed by a `u16`, so no index can be out of bounds.
type Counters = [u16; 1 << 16];
const COUNTER_START: u16 = 1 << 15;

/// Fractional bits of a weight. A weight that ran away would wrap around, in encoder and decoder
/// alike; errors push it back long before.
const WEIGHT_BITS: u32 = 16;
const LIMIT: i64 = STRETCH_MAX as i64;
/// Learning rate of the weights: error (16 bits) times input (8 fractional bits) over 2^15.
/// On 64 MiB of kernel source 2^13 costs 0.7 %, 2^14 0.2 %.
const LEARNING_SHIFT: u32 = 15;

/// Without the maps, source code becomes 0.3 % larger.
/// They have a point every 128 steps of log-odds.
const POINT_SHIFT: u32 = 7;
const POINTS: usize = (4096 >> POINT_SHIFT) + 1;
const REFINEMENT_RATE: u32 = 6;

/// The coder never sees a probability nearer to 0 or 1 than this.
const PROBABILITY_MIN: i32 = 32;

/// Predictor of one kind of decision from `N` contexts, with `SETS` sets of weights and `MAPS`
/// refinement maps (both powers of two). Arrays of fixed size: no index needs a check.
pub(super) struct Predictor<const N: usize, const SETS: usize, const MAPS: usize> {
    counters: Box<[Counters; N]>,
    weights: Box<[[i32; N]; SETS]>,
    maps: Box<[[u16; POINTS]; MAPS]>,
}

/// What a decision is predicted from.
pub(super) struct Contexts<const N: usize> {
    /// One counter for each input.
    pub(super) slots: [u16; N],
    /// The set of weights, below `SETS`.
    pub(super) set: usize,
    /// The refinement map, below `MAPS`.
    pub(super) map: usize,
}

impl<const N: usize, const SETS: usize, const MAPS: usize> Predictor<N, SETS, MAPS> {
    /// Memory of one predictor, bytes.
    pub(super) const MEMORY_BYTES: usize = N * size_of::<Counters>()
        + SETS * size_of::<[i32; N]>()
        + MAPS * size_of::<[u16; POINTS]>();

    /// As after `reset`. `None` when there is no memory.
    pub(super) fn new() -> Option<Self> {
        const { assert!(SETS.is_power_of_two() && MAPS.is_power_of_two()) };
        Some(Self {
            counters: filled([COUNTER_START; 1 << 16])?,
            weights: filled([start_weight(N); N])?,
            maps: filled(identity_map())?,
        })
    }

    /// Forgets all that was learned.
    pub(super) fn reset(&mut self) {
        for counters in self.counters.iter_mut() {
            counters.fill(COUNTER_START);
        }
        self.weights.fill([start_weight(N); N]);
        self.maps.fill(identity_map());
    }

    /// Codes one decision and learns from it. `rates` are the shifts of the counters' adaption.
    #[inline(always)]
    pub(super) fn code<C: BinaryCoder>(
        &mut self,
        coder: &mut C,
        contexts: &Contexts<N>,
        rates: &[u32; N],
        bit: bool,
    ) -> bool {
        let counters = &mut self.counters;
        let weights = &mut self.weights[contexts.set & (SETS - 1)];
        let map = &mut self.maps[contexts.map & (MAPS - 1)];
        let mut inputs = [0; N];
        let mut sum = 0_i64;
        for n in 0..N {
            inputs[n] = stretch(counters[n][usize::from(contexts.slots[n])]);
            sum = sum.wrapping_add(i64::from(inputs[n]) * i64::from(weights[n]));
        }
        let mixed = (sum >> WEIGHT_BITS).clamp(-LIMIT, LIMIT) as i32;
        let mixed_probability = squash(mixed) as i32;
        let place = (mixed + 2048) as usize;
        let (point, share) = (place >> POINT_SHIFT, (place & 127) as i32);
        let (below, above) = (i32::from(map[point]), i32::from(map[point + 1]));
        let refined = below + (((above - below) * share) >> POINT_SHIFT);
        let last = (mixed_probability + refined) >> 1;
        let last = last.clamp(PROBABILITY_MIN, (1 << PROBABILITY_BITS) - PROBABILITY_MIN);

        let bit = coder.code(bit, last as u32);

        let target = target(bit);
        // 15 bits and a sign, so that the product needs only 16-bit factors.
        let error = (target - mixed_probability) >> 1;
        for n in 0..N {
            let step = (inputs[n] * error + (1 << (LEARNING_SHIFT - 2))) >> (LEARNING_SHIFT - 1);
            weights[n] = weights[n].wrapping_add(step);
        }
        adapt(
            &mut map[point + usize::from(share >= 64)],
            target,
            REFINEMENT_RATE,
        );
        for n in 0..N {
            adapt(
                &mut counters[n][usize::from(contexts.slots[n])],
                target,
                rates[n],
            );
        }
        bit
    }
}

/// The probability that a decision turned out to have, as near to 0 or 1 as 16 bits allow.
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

/// Inputs overlap in what they know, so they add up to twice an average at first.
const fn start_weight(inputs: usize) -> i32 {
    (2 << WEIGHT_BITS) / (inputs as i32 + 2)
}

fn identity_map() -> [u16; POINTS] {
    let mut points = [0; POINTS];
    for (index, point) in points.iter_mut().enumerate() {
        let x = (index << POINT_SHIFT) as i32 - 2048;
        // 65536 - 16 at most: fits.
        *point = squash(x.clamp(-STRETCH_MAX, STRETCH_MAX)) as u16;
    }
    points
}

/// An array on the heap, made without passing over the stack. `None` when there is no memory.
fn filled<T: Copy, const COUNT: usize>(value: T) -> Option<Box<[T; COUNT]>> {
    let mut items = Vec::new();
    items.try_reserve_exact(COUNT).ok()?;
    items.resize(COUNT, value);
    items.into_boxed_slice().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::{Decoder, Encoder};

    /// Codes decisions that follow the second of two contexts; the first one is noise.
    fn code<C: BinaryCoder>(coder: &mut C, bits: &[bool]) -> Vec<bool> {
        let mut predictor = Predictor::<2, 4, 4>::new().unwrap();
        let mut before = false;
        let noise = crate::property::noise(bits.len(), 6);
        let coded = bits.iter().zip(noise).map(|(&bit, noise)| {
            let contexts = Contexts {
                slots: [u16::from(noise), u16::from(before)],
                set: 9,
                map: usize::from(noise),
            };
            before = predictor.code(coder, &contexts, &[4, 5], bit);
            before
        });
        coded.collect()
    }

    #[test]
    fn learns_which_context_tells_and_decodes_the_same() {
        let alternating: Vec<bool> = (0..20_000).map(|n| n % 2 == 0).collect();
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
        assert_eq!(code(&mut encoder, &alternating), alternating);
        encoder.finish();
        assert!(out.len() < 100, "{}", out.len());
        let mut decoder = Decoder::new(&out);
        assert_eq!(code(&mut decoder, &vec![false; 20_000]), alternating);
        assert!(decoder.is_used_up());
    }

    #[test]
    fn noise_costs_little_more_than_itself() {
        let bytes = crate::property::noise(2000, 2);
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
