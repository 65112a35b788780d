//! Every kernel that this processor supports, compared with the scalar form.

use super::super::block::{BLOCK_BYTES, Block};
use super::super::rounds;
use super::dispatch::{LaneInput, compress_inputs, drive};
#[cfg(target_arch = "x86_64")]
use super::dispatch::{SINGLE_BLOCKS_MIN, compress_single};
use super::kernel::{Kernel, LaneStates};
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, avx512_single};
use crate::property::patterned_bytes;

/// The number of blocks that each lane has, and the number that the kernel compresses.
const SIZES: [(usize, usize); 5] = [(1, 0), (1, 1), (2, 1), (5, 5), (40, 37)];

fn assert_kernel_matches_scalar_form<const LANES: usize>(kernel: Kernel<LANES>) {
    for (available, count) in SIZES {
        let bytes = patterned_bytes(available * LANES * BLOCK_BYTES + LANES, count as u64 + 1);
        // Each lane begins at another offset in a word.
        let lanes: [&[Block]; LANES] = std::array::from_fn(|lane| {
            let from = lane * available * BLOCK_BYTES + lane;
            bytes[from..from + available * BLOCK_BYTES].as_chunks().0
        });
        let before: LaneStates<LANES> = std::array::from_fn(|word| {
            std::array::from_fn(|lane| (lane as u32 + 1).wrapping_mul(0x9e37_79b9 + word as u32))
        });
        let mut states = before;
        kernel(&mut states, lanes, count);
        for lane in 0..LANES {
            let mut state = before.map(|words| words[lane]);
            rounds::compress_blocks(&mut state, &lanes[lane][..count]);
            assert_eq!(
                states.map(|words| words[lane]),
                state,
                "lane {lane} of {LANES}"
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_form_for_one_input_matches_the_scalar_form() {
    let bytes = patterned_bytes(1 + 2 * SINGLE_BLOCKS_MIN * BLOCK_BYTES, 4);
    let (blocks, _) = bytes[1..].as_chunks();
    for count in [
        0,
        1,
        2,
        SINGLE_BLOCKS_MIN - 1,
        SINGLE_BLOCKS_MIN,
        2 * SINGLE_BLOCKS_MIN,
    ] {
        let mut states = [[1, 2, 3, u32::MAX]; 3];
        rounds::compress_blocks(&mut states[0], &blocks[..count]);
        compress_single(&mut states[1], &blocks[..count]);
        assert_eq!(states[1], states[0], "{count} blocks");
        if avx512_single::is_available() {
            avx512_single::compress_blocks(&mut states[2], &blocks[..count]);
            assert_eq!(states[2], states[0], "{count} blocks");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_match_the_scalar_form() {
    if avx2::is_available() {
        assert_kernel_matches_scalar_form::<8>(avx2::compress_8);
        assert_kernel_matches_scalar_form::<16>(avx2::compress_16);
    }
    if avx512::is_available() {
        assert_kernel_matches_scalar_form::<16>(avx512::compress_16);
        assert_kernel_matches_scalar_form::<32>(avx512::compress_32);
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[test]
fn kernels_match_the_scalar_form() {
    assert_kernel_matches_scalar_form::<4>(neon::compress_4);
    assert_kernel_matches_scalar_form::<8>(neon::compress_8);
}

/// Tests [`drive`] with a kernel made of the scalar form, so that the test does not depend on the
/// processor.
#[test]
fn lanes_are_refilled_and_idle_lanes_have_no_effect() {
    fn scalar_kernel(states: &mut LaneStates<3>, inputs: [&[Block]; 3], count: usize) {
        for (lane, blocks) in inputs.iter().enumerate() {
            let mut state = states.map(|words| words[lane]);
            rounds::compress_blocks(&mut state, &blocks[..count]);
            for (words, word) in states.iter_mut().zip(state) {
                words[lane] = word;
            }
        }
    }
    let bytes = patterned_bytes(64 * BLOCK_BYTES, 3);
    let (blocks, _) = bytes.as_chunks();
    let lengths = [5, 0, 1, 30, 2, 2, 0, 9, 1];
    for inputs_min in 1..=3 {
        let mut states = lengths.map(|length| [length as u32; 4]);
        let mut inputs: Vec<LaneInput> = states
            .iter_mut()
            .zip(lengths)
            .map(|(state, length)| LaneInput {
                state,
                blocks: &blocks[length..2 * length],
            })
            .collect();
        drive(&mut inputs, inputs_min, scalar_kernel);
        assert_eq!(
            inputs
                .iter()
                .filter(|input| !input.blocks.is_empty())
                .count(),
            inputs_min - 1
        );
        compress_inputs(&mut inputs);
        for (state, length) in states.into_iter().zip(lengths) {
            let mut expected = [length as u32; 4];
            rounds::compress_blocks(&mut expected, &blocks[length..2 * length]);
            assert_eq!(
                state, expected,
                "{length} blocks, at least {inputs_min} inputs"
            );
        }
    }
}
