//! AVX-512VL: one input, in the lowest lane of 128-bit registers.
//!
//! `unsafe` because these instructions may be used only where the processor has them; the entry
//! checks that. It pays where they take one cycle each, as on Intel's: F, G, H and I are one
//! instruction here, so a step's chain is four long, always (function, add, rotate, add): 256 for a
//! block where the scalar form has 288, and a Xeon does 734 MB/s instead of 650. AMD's Zen 5 takes
//! two cycles for each: 443 MB/s instead of 800.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::sync::OnceLock;

use super::super::rounds::{Word, compress, hidden_addends, words_of};
use super::Block;
use super::avx512::{F, G, H, I};

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
}

/// Whether this processor has the instructions, and they are as quick as the scalar ones. No
/// feature bit tells; only the maker's name does (CPUID, leaf 0), and who was not measured is taken
/// for slow.
pub(super) fn is_faster() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| is_available() && is_made_by_intel())
}

fn is_made_by_intel() -> bool {
    let leaf = __cpuid(0);
    let name = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"GenuineIntel"
}

/// A word. One exists only in functions that are compiled for AVX-512VL and run where that was
/// detected.
#[derive(Clone, Copy)]
struct Lowest(__m128i);

impl Word for Lowest {
    #[inline(always)]
    fn all(value: u32) -> Self {
        // SAFETY: called from functions compiled for AVX-512VL only, as everything that makes a
        // `Lowest`.
        Lowest(unsafe { _mm_cvtsi32_si128(value as i32) })
    }
    #[inline(always)]
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: a `Lowest` exists only where there is AVX-512VL.
        Lowest(unsafe { _mm_rol_epi32::<LEFT>(self.0) })
    }
    word_methods! { Lowest:
        plus(a, b) = _mm_add_epi32(a.0, b.0);
        plus_f(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<F>(b.0, c.0, d.0));
        plus_g(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<G>(b.0, c.0, d.0));
        plus_h(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<H>(b.0, c.0, d.0));
        plus_i(sum, b, c, d) = _mm_add_epi32(sum.0, _mm_ternarylogic_epi32::<I>(b.0, c.0, d.0));
    }
}

/// Takes `blocks` into the state of one hash.
pub(super) fn compress_blocks(state: &mut [u32; 4], blocks: &[Block]) {
    assert!(is_available());
    // SAFETY: the features were just detected.
    unsafe { compress_detected(state, blocks) }
}

#[target_feature(enable = "avx512f,avx512vl")]
fn compress_detected(state: &mut [u32; 4], blocks: &[Block]) {
    let addends = hidden_addends();
    let mut words = state.map(Lowest::all);
    for block in blocks {
        words = compress(words, &words_of(block).map(Lowest::all), addends);
    }
    *state = words.map(|word| _mm_cvtsi128_si32(word.0) as u32);
}
