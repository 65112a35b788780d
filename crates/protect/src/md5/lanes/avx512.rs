//! AVX-512: 16 lanes in a register, or 32 in two.
//!
//! `unsafe` because vector instructions may be executed only where the processor has them, which
//! every entry point checks, and because blocks are read and states are stored through pointers,
//! whose lengths the entry point checks. 16 inputs take about the time of one.
//!
//! Each of F, G, H, I is one instruction (`vpternlogd`: any function of three bits), and so is
//! rotation.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::block::Block;
use super::super::rounds::{Word, compress, hidden_addends};
use super::kernel::LaneStates;
use super::pair::Pair;

const LANES: usize = 16;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// Sixteen words. It exists only in functions that are compiled for AVX-512F and run where that
/// was detected.
#[derive(Clone, Copy)]
struct Vector(__m512i);

/// Truth tables of the functions of RFC 1321 for `vpternlogd`: bit `4 b + 2 c + d` is the result.
pub(super) const F: i32 = 0b1100_1010;
pub(super) const G: i32 = 0b1110_0100;
pub(super) const H: i32 = 0b1001_0110;
pub(super) const I: i32 = 0b0011_1001;

impl Word for Vector {
    #[inline(always)]
    fn all(value: u32) -> Self {
        // SAFETY: called from functions compiled for AVX-512F only, like all code that creates a
        // `Vector`.
        Vector(unsafe { _mm512_set1_epi32(value as i32) })
    }
    #[inline(always)]
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: a `Vector` exists only where there is AVX-512F.
        Vector(unsafe { _mm512_rol_epi32::<LEFT>(self.0) })
    }
    word_methods! { Vector:
        plus(a, b) = _mm512_add_epi32(a.0, b.0);
        plus_f(sum, b, c, d) = _mm512_add_epi32(sum.0, _mm512_ternarylogic_epi32::<F>(b.0, c.0, d.0));
        plus_g(sum, b, c, d) = _mm512_add_epi32(sum.0, _mm512_ternarylogic_epi32::<G>(b.0, c.0, d.0));
        plus_h(sum, b, c, d) = _mm512_add_epi32(sum.0, _mm512_ternarylogic_epi32::<H>(b.0, c.0, d.0));
        plus_i(sum, b, c, d) = _mm512_add_epi32(sum.0, _mm512_ternarylogic_epi32::<I>(b.0, c.0, d.0));
    }
}

kernels!(compress_16, compress_32, if is_available(), target_feature(enable = "avx512f"));

#[target_feature(enable = "avx512f")]
fn load(words: &[u32; LANES]) -> Vector {
    // SAFETY: sixteen words are 64 bytes.
    Vector(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f")]
fn store(vector: Vector, words: &mut [u32; LANES]) {
    // SAFETY: sixteen words are 64 bytes.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector.0) }
}

/// Returns block `index` of each lane word by word: the first words of all lanes, the second words,
/// and so on. x86 is little endian, as is MD5.
///
/// A row is read as a whole, because inputs are often at distances that map all of them to the same
/// cache set.
///
/// # Safety
/// Each of `inputs` points to more than `index` blocks.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn transposed(inputs: &[*const Block; LANES], index: usize) -> [Vector; 16] {
    // SAFETY: the block exists, and has 64 bytes.
    let row = |lane: usize| unsafe { _mm512_loadu_si512(inputs[lane].add(index).cast()) };
    let mut words = [Vector(_mm512_setzero_si512()); 16];
    // Four lanes at a time: each quarter of 128 bits holds a word of each of them.
    let fours: [[__m512i; 4]; 4] = std::array::from_fn(|group| {
        let (a, b) = (row(4 * group), row(4 * group + 1));
        let (c, d) = (row(4 * group + 2), row(4 * group + 3));
        let (ab_low, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let (cd_low, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        [
            _mm512_unpacklo_epi64(ab_low, cd_low),
            _mm512_unpackhi_epi64(ab_low, cd_low),
            _mm512_unpacklo_epi64(ab_high, cd_high),
            _mm512_unpackhi_epi64(ab_high, cd_high),
        ]
    });
    // Then combines the quarters of each word.
    for word in 0..4 {
        let [a, b, c, d] = fours.map(|four| four[word]);
        let (ab_low, cd_low) = (
            _mm512_shuffle_i32x4::<0x44>(a, b),
            _mm512_shuffle_i32x4::<0x44>(c, d),
        );
        let (ab_high, cd_high) = (
            _mm512_shuffle_i32x4::<0xee>(a, b),
            _mm512_shuffle_i32x4::<0xee>(c, d),
        );
        words[word] = Vector(_mm512_shuffle_i32x4::<0x88>(ab_low, cd_low));
        words[word + 4] = Vector(_mm512_shuffle_i32x4::<0xdd>(ab_low, cd_low));
        words[word + 8] = Vector(_mm512_shuffle_i32x4::<0x88>(ab_high, cd_high));
        words[word + 12] = Vector(_mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high));
    }
    words
}
