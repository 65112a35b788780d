//! AVX2: 8 lanes in a register, or 16 in two.
//!
//! `unsafe` because vector instructions may be executed only where the processor has them, which
//! every entry point checks, and because blocks are read and states are stored through pointers,
//! whose lengths the entry point checks. 16 inputs take about the time of two.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::block::Block;
use super::super::rounds::{Word, compress, hidden_addends};
use super::kernel::LaneStates;
use super::pair::Pair;

const LANES: usize = 8;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Eight words. It exists only in functions that are compiled for AVX2 and run where that was
/// detected.
#[derive(Clone, Copy)]
struct Vector(__m256i);

impl Word for Vector {
    #[inline(always)]
    fn all(value: u32) -> Self {
        // SAFETY: called from functions compiled for AVX2 only, like all code that creates a
        // `Vector`.
        Vector(unsafe { _mm256_set1_epi32(value as i32) })
    }
    #[inline(always)]
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: a `Vector` exists only where there is AVX2.
        Vector(unsafe {
            _mm256_or_si256(
                _mm256_slli_epi32::<LEFT>(self.0),
                _mm256_srli_epi32::<RIGHT>(self.0),
            )
        })
    }
    word_methods! { Vector:
        plus(a, b) = _mm256_add_epi32(a.0, b.0);
        plus_f(sum, b, c, d) = {
            let chosen = _mm256_and_si256(b.0, _mm256_xor_si256(c.0, d.0));
            _mm256_add_epi32(sum.0, _mm256_xor_si256(d.0, chosen))
        };
        plus_g(sum, b, c, d) = {
            let early = _mm256_add_epi32(sum.0, _mm256_andnot_si256(d.0, c.0));
            _mm256_add_epi32(early, _mm256_and_si256(d.0, b.0))
        };
        plus_h(sum, b, c, d) = {
            let parity = _mm256_xor_si256(b.0, _mm256_xor_si256(c.0, d.0));
            _mm256_add_epi32(sum.0, parity)
        };
        plus_i(sum, b, c, d) = {
            let not_d = _mm256_xor_si256(d.0, _mm256_set1_epi32(-1));
            let mixed = _mm256_xor_si256(c.0, _mm256_or_si256(b.0, not_d));
            _mm256_add_epi32(sum.0, mixed)
        };
    }
}

kernels!(compress_8, compress_16, if is_available(), target_feature(enable = "avx2"));

#[target_feature(enable = "avx2")]
fn load(words: &[u32; LANES]) -> Vector {
    // SAFETY: eight words are 32 bytes.
    Vector(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
}

#[target_feature(enable = "avx2")]
fn store(vector: Vector, words: &mut [u32; LANES]) {
    // SAFETY: eight words are 32 bytes.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector.0) }
}

/// Returns block `index` of each lane word by word: the first words of all lanes, the second words,
/// and so on. x86 is little endian, as is MD5.
///
/// # Safety
/// Each of `inputs` points to more than `index` blocks.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn transposed(inputs: &[*const Block; LANES], index: usize) -> [Vector; 16] {
    let mut words = [Vector(_mm256_setzero_si256()); 16];
    for (half, words) in words.chunks_exact_mut(LANES).enumerate() {
        // SAFETY: the block exists, and has two halves of 32 bytes.
        let row = |lane: usize| unsafe {
            _mm256_loadu_si256(inputs[lane].add(index).cast::<__m256i>().add(half))
        };
        // Four lanes at a time: each half of 128 bits holds a word of each of them.
        let fours: [[__m256i; 4]; 2] = std::array::from_fn(|group| {
            let (a, b) = (row(4 * group), row(4 * group + 1));
            let (c, d) = (row(4 * group + 2), row(4 * group + 3));
            let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            [
                _mm256_unpacklo_epi64(ab_low, cd_low),
                _mm256_unpackhi_epi64(ab_low, cd_low),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ]
        });
        // Then combines the halves of each word.
        for word in 0..4 {
            let [a, b] = fours.map(|four| four[word]);
            words[word] = Vector(_mm256_permute2x128_si256::<0x20>(a, b));
            words[word + 4] = Vector(_mm256_permute2x128_si256::<0x31>(a, b));
        }
    }
    words
}
