//! Weighted sums of up to four counters: the mixing of Mahoney 2005 ("Adaptive Weighing of Context
//! Models for Lossless Data Compression", Florida Tech CS-2005-16), in 16-bit numbers.
//!
//! `unsafe` for the intrinsics of SSE2, which every x86-64 processor has: with the scalar code that
//! compilers generate for four inputs, coding takes 1.1 to 1.2 times as long. `plain` is the
//! reference implementation, and is used on all other processors.
#![allow(unsafe_code)]

#[cfg(not(target_arch = "x86_64"))]
pub(super) use plain::Inputs;
#[cfg(target_arch = "x86_64")]
pub(super) use sse2::Inputs;

use super::counter::Counter;

/// The maximum number of inputs of a mix. Unused ones are 0.
pub(super) const INPUTS_MAX: usize = 4;

/// One weight for each input; 8192 is 1. Weights of 32 bits do not make anything smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weights([i16; INPUTS_MAX]);

impl Weights {
    /// Inputs are correlated, so the initial weights add up to twice the weights of an average.
    pub(super) const fn start(inputs: usize) -> Self {
        Self([(2 << WEIGHT_BITS) / (inputs as i16 + 2); INPUTS_MAX])
    }
}

/// The fraction bits of a weight.
const WEIGHT_BITS: u32 = 13;
/// A sum has 25 fraction bits. This many are removed, then it is clamped to 16 bits,
const SUM_SHIFT: i32 = 13;
/// then these are removed: 8 are left.
const MIXED_SHIFT: i32 = 4;
/// Products of input and error lose 16 bits and then, with rounding, this many.
const STEP_SHIFT: i32 = 5;
const STEP_HALF: i16 = 1 << (STEP_SHIFT - 1);

#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    use crate::codecs::bwt::mix::{
        Counter, INPUTS_MAX, MIXED_SHIFT, STEP_HALF, STEP_SHIFT, SUM_SHIFT, Weights,
    };

    #[derive(Clone, Copy)]
    pub(in super::super) struct Inputs([Counter; INPUTS_MAX]);

    impl Inputs {
        pub(in super::super) fn new(inputs: [Counter; INPUTS_MAX]) -> Self {
            Self(inputs)
        }

        /// Log odds in 1/256 natural units, -2048..=2047.
        pub(in super::super) fn mix(self, weights: &Weights) -> i32 {
            let products = self.0.iter().zip(&weights.0);
            let products = products.map(|(&input, &weight)| i32::from(input) * i32::from(weight));
            let sum = products.fold(0, i32::wrapping_add) >> SUM_SHIFT;
            sum.clamp(i16::MIN.into(), i16::MAX.into()) >> MIXED_SHIFT
        }

        /// Moves the weights in the direction that reduces `error`: 2^15 is 1, and it has at most
        /// 16 bits.
        pub(in super::super) fn train(self, weights: &mut Weights, error: i32) {
            for (&input, weight) in self.0.iter().zip(&mut weights.0) {
                let step = (i32::from(input) * error) >> 16;
                let step = (step + i32::from(STEP_HALF)) >> STEP_SHIFT;
                *weight = weight.saturating_add(step as i16);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi16, _mm_add_epi32, _mm_adds_epi16, _mm_cvtsi32_si128,
        _mm_cvtsi128_si32, _mm_insert_epi16, _mm_loadl_epi64, _mm_madd_epi16, _mm_mulhi_epi16,
        _mm_packs_epi32, _mm_set1_epi16, _mm_shuffle_epi32, _mm_srai_epi16, _mm_srai_epi32,
        _mm_storel_epi64,
    };

    use crate::codecs::bwt::mix::{
        Counter, INPUTS_MAX, MIXED_SHIFT, STEP_HALF, STEP_SHIFT, SUM_SHIFT, Weights,
    };

    #[derive(Clone, Copy)]
    pub(in super::super) struct Inputs(__m128i);

    impl Inputs {
        #[inline(always)]
        pub(in super::super) fn new([a, b, c, d]: [Counter; INPUTS_MAX]) -> Self {
            // SAFETY: SSE2 is part of x86-64.
            unsafe {
                let inputs = _mm_cvtsi32_si128(i32::from(a) & 0xFFFF);
                let inputs = _mm_insert_epi16::<1>(inputs, i32::from(b));
                let inputs = _mm_insert_epi16::<2>(inputs, i32::from(c));
                Self(_mm_insert_epi16::<3>(inputs, i32::from(d)))
            }
        }

        #[inline(always)]
        pub(in super::super) fn mix(self, weights: &Weights) -> i32 {
            // SAFETY: SSE2 is part of x86-64; the load is unaligned and reads the 8 bytes of
            // `weights`.
            unsafe {
                let weights = _mm_loadl_epi64((&raw const weights.0).cast());
                let sums = _mm_madd_epi16(self.0, weights);
                let sum = _mm_add_epi32(sums, _mm_shuffle_epi32::<1>(sums));
                let sum = _mm_srai_epi32::<SUM_SHIFT>(sum);
                let clamped = _mm_cvtsi128_si32(_mm_packs_epi32(sum, sum)) as i16;
                i32::from(clamped >> MIXED_SHIFT)
            }
        }

        #[inline(always)]
        pub(in super::super) fn train(self, weights: &mut Weights, error: i32) {
            // SAFETY: as above; the store writes these 8 bytes.
            unsafe {
                let step = _mm_mulhi_epi16(self.0, _mm_set1_epi16(error as i16));
                let step = _mm_add_epi16(step, _mm_set1_epi16(STEP_HALF));
                let step = _mm_srai_epi16::<STEP_SHIFT>(step);
                let moved = _mm_adds_epi16(_mm_loadl_epi64((&raw const weights.0).cast()), step);
                _mm_storel_epi64((&raw mut weights.0).cast(), moved);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::random_bytes;

    /// Random numbers, including the ends of the range.
    fn words(seed: u64) -> [i16; 9] {
        let random = random_bytes(27, seed);
        let (parts, _) = random.as_chunks::<3>();
        std::array::from_fn(|index| match parts[index] {
            [0..16, ..] => i16::MIN,
            [16..32, ..] => i16::MAX,
            [32..64, low, _] => i16::from(low as i8),
            [_, low, high] => i16::from_le_bytes([low, high]),
        })
    }

    #[test]
    fn vector_code_matches_reference() {
        for seed in 0..5000 {
            let [a, b, c, d, weights @ .., error] = words(seed);
            let mut fast_weights = Weights(weights);
            let mut plain_weights = Weights(weights);
            let fast = Inputs::new([a, b, c, d]);
            let plain = plain::Inputs::new([a, b, c, d]);
            let mixed = plain.mix(&plain_weights);
            assert!((-2048..2048).contains(&mixed));
            assert_eq!(fast.mix(&fast_weights), mixed, "{seed}");
            fast.train(&mut fast_weights, i32::from(error));
            plain.train(&mut plain_weights, i32::from(error));
            assert_eq!(fast_weights, plain_weights, "{seed}");
        }
    }

    #[test]
    fn an_input_of_weight_one_is_unchanged() {
        let weights = Weights([1 << WEIGHT_BITS, 0, 0, 0]);
        for input in [-32_000, -1, 0, 15, 16, 32_000] {
            let mixed = Inputs::new([input, 77, 77, 77]).mix(&weights);
            assert_eq!(mixed, i32::from(input >> 4));
        }
    }
}
