//! Every kernel that this processor has, beside the scalar form.

use super::*;
use crate::property::patterned_bytes;

/// Blocks that are there for each lane, and blocks that are asked for.
const SIZES: [(usize, usize); 5] = [(1, 0), (1, 1), (2, 1), (5, 5), (40, 37)];

fn kernel_equals_scalar<const LANES: usize>(kernel: Kernel<LANES>) {
    for (there, count) in SIZES {
        let bytes = patterned_bytes(there * LANES * BLOCK_BYTES + LANES, count as u64 + 1);
        // No two lanes begin at the same place in a word.
        let lanes: [&[Block]; LANES] = std::array::from_fn(|lane| {
            let from = lane * there * BLOCK_BYTES + lane;
            bytes[from..from + there * BLOCK_BYTES].as_chunks().0
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
fn the_form_for_one_input_equals_the_scalar_form() {
    let bytes = patterned_bytes(1 + 2 * ALONE_BLOCKS_MIN * BLOCK_BYTES, 4);
    let (blocks, _) = bytes[1..].as_chunks();
    for count in [
        0,
        1,
        2,
        ALONE_BLOCKS_MIN - 1,
        ALONE_BLOCKS_MIN,
        2 * ALONE_BLOCKS_MIN,
    ] {
        let mut states = [[1, 2, 3, u32::MAX]; 3];
        rounds::compress_blocks(&mut states[0], &blocks[..count]);
        compress_alone(&mut states[1], &blocks[..count]);
        assert_eq!(states[1], states[0], "{count} blocks");
        if avx512_alone::is_available() {
            avx512_alone::compress_blocks(&mut states[2], &blocks[..count]);
            assert_eq!(states[2], states[0], "{count} blocks");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_equal_the_scalar_form() {
    if avx2::is_available() {
        kernel_equals_scalar::<8>(avx2::compress_8);
        kernel_equals_scalar::<16>(avx2::compress_16);
    }
    if avx512::is_available() {
        kernel_equals_scalar::<16>(avx512::compress_16);
        kernel_equals_scalar::<32>(avx512::compress_32);
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[test]
fn kernels_equal_the_scalar_form() {
    kernel_equals_scalar::<4>(neon::compress_4);
    kernel_equals_scalar::<8>(neon::compress_8);
}

/// [`drive`] with a kernel of any width, made of the scalar form: what it does with lanes does not
/// depend on the processor.
#[test]
fn lanes_are_filled_again_and_idle_ones_harm_nobody() {
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
    for fewest in 1..=3 {
        let mut states = lengths.map(|length| [length as u32; 4]);
        let mut jobs: Vec<Job> = states
            .iter_mut()
            .zip(lengths)
            .map(|(state, length)| Job {
                state,
                blocks: &blocks[length..2 * length],
            })
            .collect();
        drive(&mut jobs, fewest, scalar_kernel);
        assert_eq!(
            jobs.iter().filter(|job| !job.blocks.is_empty()).count(),
            fewest - 1
        );
        compress_jobs(&mut jobs);
        for (state, length) in states.into_iter().zip(lengths) {
            let mut expected = [length as u32; 4];
            rounds::compress_blocks(&mut expected, &blocks[length..2 * length]);
            assert_eq!(state, expected, "{length} blocks, fewest {fewest}");
        }
    }
}
