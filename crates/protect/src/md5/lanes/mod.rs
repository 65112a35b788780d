//! Many inputs at once: each in a lane of vector registers, since the steps of one input wait for
//! each other and those of different inputs do not.
//!
//! This file says which input is in which lane. A kernel (one file for each kind of processor)
//! compresses the next blocks of all lanes; when an input ends, the next one takes its lane, and
//! when only few are left, narrower kernels and at last the scalar form go on. Lanes without an
//! input do the work of another one over again, for nobody.

use super::{BLOCK_BYTES, rounds};

#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
#[macro_use]
mod kernel;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_alone;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
mod pair;

/// Inputs that the widest kernel takes at once, whatever the processor.
pub const LANES_MAX: usize = 32;

/// One block.
pub(super) type Block = [u8; BLOCK_BYTES];

/// States side by side: the first words of all lanes, the second words, and so on.
pub(super) type LaneStates<const LANES: usize> = [[u32; LANES]; 4];

/// Compresses the first `count` blocks of each lane's input into its state.
type Kernel<const LANES: usize> = fn(&mut LaneStates<LANES>, [&[Block]; LANES], usize);

/// Blocks that are to be compressed into a state.
pub(super) struct Job<'a> {
    /// The state, before and after.
    pub(super) state: &'a mut [u32; 4],
    /// What is left.
    pub(super) blocks: &'a [Block],
}

/// Compresses all blocks of all jobs.
pub(super) fn compress_jobs(jobs: &mut [Job]) {
    if jobs.len() > 1 {
        compress_side_by_side(jobs);
    }
    for job in jobs {
        compress_alone(job.state, job.blocks);
        job.blocks = &[];
    }
}

/// Blocks from which on it pays to ask what the processor has: on fewer the gain is below three
/// microseconds, and the first answer may come slowly (a virtual machine asks its host).
#[cfg(target_arch = "x86_64")]
const ALONE_BLOCKS_MIN: usize = 256;

/// Compresses blocks of one input by the fastest form for it.
pub(super) fn compress_alone(state: &mut [u32; 4], blocks: &[Block]) {
    #[cfg(target_arch = "x86_64")]
    if blocks.len() >= ALONE_BLOCKS_MIN && avx512_alone::is_faster() {
        return avx512_alone::compress_blocks(state, blocks);
    }
    rounds::compress_blocks(state, blocks);
}

/// Compresses blocks as long as that is faster than one job after the other, on this processor.
#[cfg(target_arch = "x86_64")]
fn compress_side_by_side(jobs: &mut [Job]) {
    if avx512::is_available() {
        drive(jobs, 17, avx512::compress_32);
        drive(jobs, 2, avx512::compress_16);
    } else if avx2::is_available() {
        drive(jobs, 9, avx2::compress_16);
        drive(jobs, 2, avx2::compress_8);
    }
}

/// Compresses blocks as long as that is faster than one job after the other, on this processor.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
fn compress_side_by_side(jobs: &mut [Job]) {
    drive(jobs, 5, neon::compress_8);
    drive(jobs, 3, neon::compress_4);
}

#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
)))]
fn compress_side_by_side(_jobs: &mut [Job]) {}

/// Compresses blocks with `kernel` as long as at least `fewest` jobs have some left.
fn drive<const LANES: usize>(jobs: &mut [Job], fewest: usize, kernel: Kernel<LANES>) {
    const { assert!(LANES <= LANES_MAX) };
    let mut waiting = jobs.iter_mut().filter(|job| !job.blocks.is_empty());
    let mut lanes: [Option<&mut Job>; LANES] = std::array::from_fn(|_| waiting.next());
    loop {
        let active = lanes.iter().flatten();
        let shortest = active.clone().map(|job| job.blocks).min_by_key(|b| b.len());
        let Some(shortest) = shortest.filter(|_| active.count() >= fewest) else {
            return;
        };
        let count = shortest.len();
        let inputs = lanes
            .each_ref()
            .map(|lane| lane.as_ref().map_or(shortest, |job| job.blocks));
        let mut states = gathered(&lanes);
        kernel(&mut states, inputs, count);
        for (lane, job) in lanes.iter_mut().enumerate() {
            let Some(job) = job else { continue };
            *job.state = std::array::from_fn(|word| states[word][lane]);
            job.blocks = &job.blocks[count..];
        }
        for lane in &mut lanes {
            if lane.as_ref().is_some_and(|job| job.blocks.is_empty()) {
                *lane = waiting.next();
            }
        }
    }
}

/// The states of all jobs, side by side.
fn gathered<const LANES: usize>(lanes: &[Option<&mut Job>; LANES]) -> LaneStates<LANES> {
    let word_of = |word: usize, lane: usize| lanes[lane].as_ref().map_or(0, |job| job.state[word]);
    std::array::from_fn(|word| std::array::from_fn(|lane| word_of(word, lane)))
}

#[cfg(test)]
mod tests;
