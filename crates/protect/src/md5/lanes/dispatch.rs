//! Assigns inputs to lanes and selects the kernel.
//!
//! When an input ends, the next one takes its lane. When few inputs remain, narrower kernels and
//! finally the scalar form continue. A lane without an input repeats the work of another lane, and
//! its result is discarded.

use super::super::block::Block;
use super::super::rounds;
use super::kernel::{Kernel, LANES_MAX, LaneStates};
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, avx512_single};

/// The blocks of one input, and the state into which they are compressed.
pub(crate) struct LaneInput<'a> {
    pub(crate) state: &'a mut [u32; 4],
    pub(crate) blocks: &'a [Block],
}

pub(crate) fn compress_inputs(inputs: &mut [LaneInput]) {
    if inputs.len() > 1 {
        compress_in_lanes(inputs);
    }
    for input in inputs {
        compress_single(input.state, input.blocks);
        input.blocks = &[];
    }
}

/// The number of blocks from which the processor's features are queried. For fewer blocks the gain
/// is below three microseconds, and the first query may be slow (a virtual machine asks its host).
#[cfg(target_arch = "x86_64")]
pub(super) const SINGLE_BLOCKS_MIN: usize = 256;

/// Compresses the blocks of one input with the fastest form for it.
pub(crate) fn compress_single(state: &mut [u32; 4], blocks: &[Block]) {
    #[cfg(target_arch = "x86_64")]
    if blocks.len() >= SINGLE_BLOCKS_MIN && avx512_single::is_faster() {
        return avx512_single::compress_blocks(state, blocks);
    }
    rounds::compress_blocks(state, blocks);
}

/// Compresses blocks in lanes while this is faster than one input after the other.
#[cfg(target_arch = "x86_64")]
fn compress_in_lanes(inputs: &mut [LaneInput]) {
    if avx512::is_available() {
        drive(inputs, 17, avx512::compress_32);
        drive(inputs, 2, avx512::compress_16);
    } else if avx2::is_available() {
        drive(inputs, 9, avx2::compress_16);
        drive(inputs, 2, avx2::compress_8);
    }
}

/// Compresses blocks in lanes while this is faster than one input after the other.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
fn compress_in_lanes(inputs: &mut [LaneInput]) {
    drive(inputs, 5, neon::compress_8);
    drive(inputs, 3, neon::compress_4);
}

#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
)))]
fn compress_in_lanes(_inputs: &mut [LaneInput]) {}

/// Compresses blocks with `kernel` while at least `inputs_min` inputs have blocks left.
pub(super) fn drive<const LANES: usize>(
    inputs: &mut [LaneInput],
    inputs_min: usize,
    kernel: Kernel<LANES>,
) {
    const { assert!(LANES <= LANES_MAX) };
    let mut waiting = inputs.iter_mut().filter(|input| !input.blocks.is_empty());
    let mut lanes: [Option<&mut LaneInput>; LANES] = std::array::from_fn(|_| waiting.next());
    loop {
        let active = lanes.iter().flatten();
        let shortest = active
            .clone()
            .map(|input| input.blocks)
            .min_by_key(|b| b.len());
        let Some(shortest) = shortest.filter(|_| active.count() >= inputs_min) else {
            return;
        };
        let count = shortest.len();
        let blocks = lanes
            .each_ref()
            .map(|lane| lane.as_ref().map_or(shortest, |input| input.blocks));
        let mut states = gather_states(&lanes);
        kernel(&mut states, blocks, count);
        for (lane, input) in lanes.iter_mut().enumerate() {
            let Some(input) = input else { continue };
            *input.state = std::array::from_fn(|word| states[word][lane]);
            input.blocks = &input.blocks[count..];
        }
        for lane in &mut lanes {
            if lane.as_ref().is_some_and(|input| input.blocks.is_empty()) {
                *lane = waiting.next();
            }
        }
    }
}

fn gather_states<const LANES: usize>(lanes: &[Option<&mut LaneInput>; LANES]) -> LaneStates<LANES> {
    let word_of =
        |word: usize, lane: usize| lanes[lane].as_ref().map_or(0, |input| input.state[word]);
    std::array::from_fn(|word| std::array::from_fn(|lane| word_of(word, lane)))
}
