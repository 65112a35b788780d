//! NEON: 4 lanes in a register, or 8 in two.
//!
//! `unsafe` because blocks are read and states are stored through pointers, whose lengths the entry
//! point checks, and because intrinsics require it. Every 64-bit Arm processor that runs this
//! program has NEON (the compiler assumes it there). Blocks are read as words of the processor, so
//! the module is compiled only where these are little endian.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::super::block::Block;
use super::super::rounds::{Word, compress, hidden_addends};
use super::kernel::LaneStates;
use super::pair::Pair;

const LANES: usize = 4;

#[derive(Clone, Copy)]
struct Vector(uint32x4_t);

impl Word for Vector {
    #[inline(always)]
    fn all(value: u32) -> Self {
        // SAFETY: NEON is always available.
        Vector(unsafe { vdupq_n_u32(value) })
    }
    #[inline(always)]
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: NEON is always available. (Shift right and insert below what was shifted left.)
        Vector(unsafe { vsriq_n_u32::<RIGHT>(vshlq_n_u32::<LEFT>(self.0), self.0) })
    }
    word_methods! { Vector:
        plus(a, b) = vaddq_u32(a.0, b.0);
        plus_f(sum, b, c, d) = vaddq_u32(sum.0, vbslq_u32(b.0, c.0, d.0));
        plus_g(sum, b, c, d) = vaddq_u32(vaddq_u32(sum.0, vbicq_u32(c.0, d.0)), vandq_u32(d.0, b.0));
        plus_h(sum, b, c, d) = vaddq_u32(sum.0, veorq_u32(b.0, veorq_u32(c.0, d.0)));
        plus_i(sum, b, c, d) = vaddq_u32(sum.0, veorq_u32(c.0, vornq_u32(b.0, d.0)));
    }
}

kernels!(compress_4, compress_8, if true);

#[inline(always)]
fn load(words: &[u32; LANES]) -> Vector {
    // SAFETY: four words are 16 bytes.
    Vector(unsafe { vld1q_u32(words.as_ptr()) })
}

#[inline(always)]
fn store(vector: Vector, words: &mut [u32; LANES]) {
    // SAFETY: four words are 16 bytes.
    unsafe { vst1q_u32(words.as_mut_ptr(), vector.0) }
}

/// Returns block `index` of each lane word by word: the first words of all lanes, the second words,
/// and so on.
///
/// # Safety
/// Each of `inputs` points to more than `index` blocks.
#[inline(always)]
unsafe fn transposed(inputs: &[*const Block; LANES], index: usize) -> [Vector; 16] {
    let mut words = [Vector::all(0); 16];
    for (quarter, words) in words.chunks_exact_mut(LANES).enumerate() {
        // SAFETY: the block exists and has four quarters of 16 bytes; a load of bytes may begin
        // anywhere.
        let row = |lane: usize| unsafe {
            let bytes = vld1q_u8(inputs[lane].add(index).cast::<u8>().add(16 * quarter));
            vreinterpretq_u32_u8(bytes)
        };
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        // SAFETY: NEON is always available.
        unsafe {
            let wide = |vector| vreinterpretq_u64_u32(vector);
            let (ab_even, ab_odd) = (wide(vtrn1q_u32(a, b)), wide(vtrn2q_u32(a, b)));
            let (cd_even, cd_odd) = (wide(vtrn1q_u32(c, d)), wide(vtrn2q_u32(c, d)));
            words[0] = Vector(vreinterpretq_u32_u64(vtrn1q_u64(ab_even, cd_even)));
            words[1] = Vector(vreinterpretq_u32_u64(vtrn1q_u64(ab_odd, cd_odd)));
            words[2] = Vector(vreinterpretq_u32_u64(vtrn2q_u64(ab_even, cd_even)));
            words[3] = Vector(vreinterpretq_u32_u64(vtrn2q_u64(ab_odd, cd_odd)));
        }
    }
    words
}
