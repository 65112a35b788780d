//! AVX-512VL: one input, in the lowest lane of 128-bit registers.
//!
//! `unsafe` because these instructions may be executed only where the processor has them, which the
//! entry point checks. It is faster where they take one cycle each, as on Intel's processors: F, G,
//! H and I are one instruction each, so the dependency chain of a step has four operations
//! (function, add, rotate, add), 256 for a block where the scalar form has 288. A Xeon hashes 734
//! MB/s instead of
//! 650. AMD's Zen 5 takes two cycles for each: 443 MB/s instead of 800.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::sync::OnceLock;

use super::super::block::Block;
use super::super::rounds::{Word, compress, hidden_addends, words_of};
use super::avx512::{F, G, H, I};

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
}

/// Whether the processor has the instructions and executes them as fast as scalar ones. No feature
/// bit states the latter, so the vendor decides (CPUID, leaf 0). Vendors that were not measured
/// count as slow.
pub(super) fn is_faster() -> bool {
    static IS_FASTER: OnceLock<bool> = OnceLock::new();
    *IS_FASTER.get_or_init(|| is_available() && is_intel())
}

fn is_intel() -> bool {
    let leaf = __cpuid(0);
    let name = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"GenuineIntel"
}

/// A word. It exists only in functions that are compiled for AVX-512VL and run where it was
/// detected.
#[derive(Clone, Copy)]
struct LowestLane(__m128i);

impl Word for LowestLane {
    #[inline(always)]
    fn all(value: u32) -> Self {
        // SAFETY: called from functions compiled for AVX-512VL only, like all code that creates a
        // `LowestLane`.
        LowestLane(unsafe { _mm_cvtsi32_si128(value as i32) })
    }
    #[inline(always)]
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: a `LowestLane` exists only where there is AVX-512VL.
        LowestLane(unsafe { _mm_rol_epi32::<LEFT>(self.0) })
    }
    word_methods! { LowestLane:
        plus(a, b) = _mm_add_epi32(a.0, b.0);
        plus_f(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<F>(b.0, c.0, d.0));
        plus_g(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<G>(b.0, c.0, d.0));
        plus_h(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<H>(b.0, c.0, d.0));
        plus_i(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<I>(b.0, c.0, d.0));
    }
}

/// Compresses `blocks` into the state of one hash.
pub(super) fn compress_blocks(state: &mut [u32; 4], blocks: &[Block]) {
    assert!(is_available());
    // SAFETY: the features were just detected.
    unsafe { compress_detected(state, blocks) }
}

#[target_feature(enable = "avx512f,avx512vl")]
fn compress_detected(state: &mut [u32; 4], blocks: &[Block]) {
    let addends = hidden_addends();
    let mut words = state.map(LowestLane::all);
    for block in blocks {
        words = compress(words, &words_of(block).map(LowestLane::all), addends);
    }
    *state = words.map(|word| _mm_cvtsi128_si32(word.0) as u32);
}
