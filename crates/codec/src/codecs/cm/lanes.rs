//! The two loops that take most of the time, over vectors of inputs and weights; and prefetching.
//!
//! `unsafe` for two reasons: compiled for AVX2 the codec takes 0.82 of the time it takes with the
//! plain loops and SSE2 (which has no 32-bit multiplication), and only intrinsics prefetch. `Plain`
//! is the reference implementation; a test compares both.
#![allow(unsafe_code)]

/// The bits that products lose before they are added.
pub(crate) const PRODUCT_SHIFT: u32 = 10;

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The bits that products of input and step lose.
    pub(crate) shift: u32,
    pub(crate) weight_max: i32,
}

/// Arithmetic on vectors of a length that is a multiple of 8.
pub(crate) trait Lanes: Copy {
    /// Runs `work`, compiled for the instructions of this machine.
    fn compile_for<R>(self, work: impl FnOnce() -> R) -> R;

    /// For each of `rows` of the weights, the sum of the products of inputs and weights, each
    /// shifted right by `PRODUCT_SHIFT`.
    fn dots<const N: usize, const R: usize>(
        self,
        inputs: &[i16; N],
        weights: &[[i32; N]],
        rows: [usize; R],
    ) -> [i32; R];

    /// In each of `rows` of the weights, adds `input * step >> shift`, rounded, to each weight, and
    /// clamps it to `-weight_max..=weight_max`.
    fn train<const N: usize, const R: usize>(
        self,
        inputs: &[i16; N],
        weights: &mut [[i32; N]],
        rows: [usize; R],
        steps: [i32; R],
        limits: Limits,
    );
}

#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Lanes for Plain {
    #[inline(always)]
    fn compile_for<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    // Not inlined: when the inputs are in registers, the compiler does not vectorize.
    #[inline(never)]
    fn dots<const N: usize, const R: usize>(
        self,
        inputs: &[i16; N],
        weights: &[[i32; N]],
        rows: [usize; R],
    ) -> [i32; R] {
        rows.map(|row| {
            let mut sum = 0_i32;
            for (&input, &weight) in inputs.iter().zip(&weights[row]) {
                sum = sum.wrapping_add(i32::from(input).wrapping_mul(weight) >> PRODUCT_SHIFT);
            }
            sum
        })
    }

    #[inline(never)]
    fn train<const N: usize, const R: usize>(
        self,
        inputs: &[i16; N],
        weights: &mut [[i32; N]],
        rows: [usize; R],
        steps: [i32; R],
        limits: Limits,
    ) {
        let half = 1 << (limits.shift - 1);
        for (row, step) in rows.into_iter().zip(steps) {
            for (&input, weight) in inputs.iter().zip(&mut weights[row]) {
                let change = i32::from(input).wrapping_mul(step).wrapping_add(half) >> limits.shift;
                *weight = weight
                    .wrapping_add(change)
                    .clamp(-limits.weight_max, limits.weight_max);
            }
        }
    }
}

/// Proof that this machine has AVX2 and the bit operations that were introduced with it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// Returns `None` if this machine lacks any of them.
    pub(crate) fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt");
        found.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    #[inline(always)]
    fn compile_for<R>(self, work: impl FnOnce() -> R) -> R {
        // SAFETY: an `Avx2` exists only where the features were detected.
        unsafe { avx2::compile_for(work) }
    }

    #[inline(always)]
    fn dots<const N: usize, const R: usize>(
        self,
        inputs: &[i16; N],
        weights: &[[i32; N]],
        rows: [usize; R],
    ) -> [i32; R] {
        const { assert!(N.is_multiple_of(8)) };
        // SAFETY: an `Avx2` exists only where the features were detected.
        unsafe { avx2::dots(inputs, weights, rows) }
    }

    #[inline(always)]
    fn train<const N: usize, const R: usize>(
        self,
        inputs: &[i16; N],
        weights: &mut [[i32; N]],
        rows: [usize; R],
        steps: [i32; R],
        limits: Limits,
    ) {
        const { assert!(N.is_multiple_of(8)) };
        // SAFETY: as above.
        unsafe { avx2::train(inputs, weights, rows, steps, limits) }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use crate::codecs::cm::lanes::{Limits, PRODUCT_SHIFT};
    use std::arch::x86_64::*;

    /// Code that is inlined here is compiled with these features: 8 percent less time for the whole
    /// model.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn compile_for<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

    #[target_feature(enable = "avx2")]
    fn widened(inputs: &[i16; 8]) -> __m256i {
        // SAFETY: the load is unaligned and reads the 16 bytes of `inputs`.
        _mm256_cvtepi16_epi32(unsafe { _mm_loadu_si128(inputs.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2")]
    fn load(weights: &[i32; 8]) -> __m256i {
        // SAFETY: the load is unaligned and reads the 32 bytes of `weights`.
        unsafe { _mm256_loadu_si256(weights.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn dots<const N: usize, const R: usize>(
        inputs: &[i16; N],
        weights: &[[i32; N]],
        rows: [usize; R],
    ) -> [i32; R] {
        // No closures: they would be compiled without AVX2 and not be inlined.
        let mut chunks = [weights[0].as_chunks::<8>().0; R];
        for (chunks, row) in chunks.iter_mut().zip(rows) {
            *chunks = weights[row].as_chunks::<8>().0;
        }
        let mut sums = [_mm256_setzero_si256(); R];
        for (index, inputs) in inputs.as_chunks::<8>().0.iter().enumerate() {
            let inputs = widened(inputs);
            for (sum, weights) in sums.iter_mut().zip(chunks) {
                let products = _mm256_mullo_epi32(inputs, load(&weights[index]));
                let shifted = _mm256_srai_epi32::<{ PRODUCT_SHIFT as i32 }>(products);
                *sum = _mm256_add_epi32(*sum, shifted);
            }
        }
        let mut totals = [0; R];
        for (total, sum) in totals.iter_mut().zip(sums) {
            let half = _mm256_extracti128_si256::<1>(sum);
            let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), half);
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b10_11_00_01>(sum));
            *total = _mm_cvtsi128_si32(sum);
        }
        totals
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn train<const N: usize, const R: usize>(
        inputs: &[i16; N],
        weights: &mut [[i32; N]],
        rows: [usize; R],
        steps: [i32; R],
        limits: Limits,
    ) {
        let half = _mm256_set1_epi32(1 << (limits.shift - 1));
        let most = _mm256_set1_epi32(limits.weight_max);
        let least = _mm256_set1_epi32(-limits.weight_max);
        let shift = _mm_cvtsi32_si128(limits.shift as i32);
        for (row, step) in rows.into_iter().zip(steps) {
            let step = _mm256_set1_epi32(step);
            let weights = weights[row].as_chunks_mut::<8>().0;
            for (inputs, weights) in inputs.as_chunks::<8>().0.iter().zip(weights) {
                let change = _mm256_mullo_epi32(widened(inputs), step);
                let change = _mm256_sra_epi32(_mm256_add_epi32(change, half), shift);
                let moved = _mm256_add_epi32(load(weights), change);
                let moved = _mm256_max_epi32(_mm256_min_epi32(moved, most), least);
                // SAFETY: the store is unaligned and writes the 32 bytes of `weights`.
                unsafe { _mm256_storeu_si256(weights.as_mut_ptr().cast(), moved) };
            }
        }
    }
}

/// Prefetches the cache line of `value`. Affects only time.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and the address comes from a reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::test_data;

    #[test]
    fn vector_code_matches_reference() {
        let Some(fast) = Avx2::detect() else {
            return;
        };
        for seed in 0..500 {
            let random = test_data::random_bytes(48 + 4 * 72 + 12, seed);
            let inputs: [i16; 24] = std::array::from_fn(|i| {
                i16::from_le_bytes([random[2 * i], random[2 * i + 1]]) >> 4
            });
            let word = |at: usize| {
                i32::from_le_bytes([random[at], random[at + 1], random[at + 2], random[at + 3]])
            };
            let weights: [[i32; 24]; 3] = std::array::from_fn(|row| {
                std::array::from_fn(|i| word(48 + 4 * (24 * row + i)) >> 12)
            });
            let rows = [2, (seed % 2) as usize];
            let dots = fast.dots(&inputs, &weights, rows);
            assert_eq!(dots, Plain.dots(&inputs, &weights, rows));
            let steps = [word(336) >> 13, word(340) >> 13];
            let limits = Limits {
                shift: 14 + seed as u32 % 6,
                weight_max: 500_000,
            };
            let (mut a, mut b) = (weights, weights);
            fast.train(&inputs, &mut a, rows, steps, limits);
            Plain.train(&inputs, &mut b, rows, steps, limits);
            assert_eq!(a, b);
            assert_ne!(a[2], weights[2]);
            assert!(a[2].iter().all(|weight| weight.abs() <= 500_000));
        }
    }
}
