//! The two loops that most of the time goes into, over vectors of inputs and weights; and prefetching.
//!
//! `unsafe` for two reasons: AVX2 doubles the speed of the mixer against what the compiler makes of
//! the plain loops with SSE2 (which has no 32-bit multiplication), and only intrinsics prefetch.
//! `Plain` is the twin that says what must come out; both are tested equal.
#![allow(unsafe_code)]

/// Bits that products lose before they are added.
pub(crate) const PRODUCT_SHIFT: u32 = 10;

/// Arithmetic on vectors whose length is a multiple of 8.
pub(crate) trait Lanes: Copy {
    /// Sum of the products of inputs and weights, each product shifted right by `PRODUCT_SHIFT`.
    fn dot<const N: usize>(self, inputs: &[i16; N], weights: &[i32; N]) -> i32;

    /// Adds `input * step >> shift`, rounded, to each weight, and clamps it to `-limit..=limit`.
    fn train<const N: usize>(
        self,
        inputs: &[i16; N],
        weights: &mut [i32; N],
        step: i32,
        shift: u32,
        limit: i32,
    );
}

/// Works everywhere.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Lanes for Plain {
    // Not inlined: where the inputs are in registers, the compiler does not form vectors.
    #[inline(never)]
    fn dot<const N: usize>(self, inputs: &[i16; N], weights: &[i32; N]) -> i32 {
        let mut sum = 0_i32;
        for (&input, &weight) in inputs.iter().zip(weights) {
            sum = sum.wrapping_add((i32::from(input).wrapping_mul(weight)) >> PRODUCT_SHIFT);
        }
        sum
    }

    #[inline(never)]
    fn train<const N: usize>(
        self,
        inputs: &[i16; N],
        weights: &mut [i32; N],
        step: i32,
        shift: u32,
        limit: i32,
    ) {
        let half = 1 << (shift - 1);
        for (&input, weight) in inputs.iter().zip(weights) {
            let change = i32::from(input).wrapping_mul(step).wrapping_add(half) >> shift;
            *weight = weight.wrapping_add(change).clamp(-limit, limit);
        }
    }
}

/// Proof that this machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// `None` when this machine has no AVX2.
    pub(crate) fn detect() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    #[inline(always)]
    fn dot<const N: usize>(self, inputs: &[i16; N], weights: &[i32; N]) -> i32 {
        const { assert!(N.is_multiple_of(8)) };
        // SAFETY: an `Avx2` exists only where the feature was detected.
        unsafe { avx2::dot(inputs, weights) }
    }

    #[inline(always)]
    fn train<const N: usize>(
        self,
        inputs: &[i16; N],
        weights: &mut [i32; N],
        step: i32,
        shift: u32,
        limit: i32,
    ) {
        const { assert!(N.is_multiple_of(8)) };
        // SAFETY: as above.
        unsafe { avx2::train(inputs, weights, step, shift, limit) }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::PRODUCT_SHIFT;
    use std::arch::x86_64::*;

    /// Eight inputs, widened.
    #[target_feature(enable = "avx2")]
    fn widened(inputs: &[i16; 8]) -> __m256i {
        // SAFETY: the load is unaligned and reads the 16 bytes of `inputs`.
        _mm256_cvtepi16_epi32(unsafe { _mm_loadu_si128(inputs.as_ptr().cast()) })
    }

    /// Eight weights.
    #[target_feature(enable = "avx2")]
    fn load(weights: &[i32; 8]) -> __m256i {
        // SAFETY: the load is unaligned and reads the 32 bytes of `weights`.
        unsafe { _mm256_loadu_si256(weights.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn dot<const N: usize>(inputs: &[i16; N], weights: &[i32; N]) -> i32 {
        let mut sums = [_mm256_setzero_si256(); 2];
        let inputs = inputs.as_chunks::<8>().0.iter();
        for (index, (inputs, weights)) in inputs.zip(weights.as_chunks::<8>().0).enumerate() {
            let products = _mm256_mullo_epi32(widened(inputs), load(weights));
            let shifted = _mm256_srai_epi32::<{ PRODUCT_SHIFT as i32 }>(products);
            sums[index % 2] = _mm256_add_epi32(sums[index % 2], shifted);
        }
        let sum = _mm256_add_epi32(sums[0], sums[1]);
        let sum = _mm_add_epi32(
            _mm256_castsi256_si128(sum),
            _mm256_extracti128_si256::<1>(sum),
        );
        let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
        let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b10_11_00_01>(sum));
        _mm_cvtsi128_si32(sum)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn train<const N: usize>(
        inputs: &[i16; N],
        weights: &mut [i32; N],
        step: i32,
        shift: u32,
        limit: i32,
    ) {
        let (step, half) = (_mm256_set1_epi32(step), _mm256_set1_epi32(1 << (shift - 1)));
        let (most, least) = (_mm256_set1_epi32(limit), _mm256_set1_epi32(-limit));
        let shift = _mm_cvtsi32_si128(shift as i32);
        let inputs = inputs.as_chunks::<8>().0.iter();
        for (inputs, weights) in inputs.zip(weights.as_chunks_mut::<8>().0) {
            let change = _mm256_mullo_epi32(widened(inputs), step);
            let change = _mm256_sra_epi32(_mm256_add_epi32(change, half), shift);
            let moved = _mm256_add_epi32(load(weights), change);
            let moved = _mm256_max_epi32(_mm256_min_epi32(moved, most), least);
            // SAFETY: the store is unaligned and writes the 32 bytes of `weights`.
            unsafe { _mm256_storeu_si256(weights.as_mut_ptr().cast(), moved) };
        }
    }
}

/// Asks for the cache line that holds `byte`. Changes nothing but time.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and the address is that of a reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use crate::property;

    #[test]
    fn vectors_say_what_plain_loops_say() {
        let Some(fast) = Avx2::detect() else {
            return;
        };
        for seed in 0..500 {
            let noise = property::noise(48 * 6 + 8, seed);
            let inputs: [i16; 48] =
                std::array::from_fn(|i| i16::from_le_bytes([noise[2 * i], noise[2 * i + 1]]) >> 4);
            let weights: [i32; 48] = std::array::from_fn(|i| {
                let at = 96 + 4 * i;
                i32::from_le_bytes([noise[at], noise[at + 1], noise[at + 2], noise[at + 3]]) >> 12
            });
            assert_eq!(fast.dot(&inputs, &weights), Plain.dot(&inputs, &weights));
            let step = i32::from(noise[288]) * 3000 - 400_000;
            let (mut a, mut b) = (weights, weights);
            fast.train(&inputs, &mut a, step, 14 + seed as u32 % 6, 500_000);
            Plain.train(&inputs, &mut b, step, 14 + seed as u32 % 6, 500_000);
            assert_eq!(a, b);
            assert!(a.iter().all(|weight| weight.abs() <= 500_000));
        }
    }
}
