//! One input: the scalar form, or the lowest lane of AVX-512, whichever is faster on this processor.
//!
//! No list of processors says which: a step's chain is shorter with AVX-512, but vector instructions may take two cycles each where
//! scalar ones take one. Measured: Xeon (Ice Lake) 734 MB/s against the scalar form's 650, EPYC (Zen 5) 443 against 800. So
//! the first input that is long enough is compressed by both in turn, piece by piece, and the clock decides for the rest of
//! the process. The digest is the same whatever it says.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use super::{Block, avx512_alone};
use crate::md5::rounds;

/// Blocks from which on it pays to ask what the processor has: on fewer the gain is below three microseconds, and the first
/// answer may come slowly (a virtual machine asks its host).
const BLOCKS_MIN: usize = 256;

/// Blocks that one form takes in one turn of the trial: 2 to 5 µs, a hundred times what reading the clock takes.
const TRIAL_BLOCKS: usize = 32;
/// Turns of each form. The fastest counts: the first ones fetch code, and any may be interrupted.
const TRIAL_TURNS: usize = 4;
const _: () = assert!(2 * TRIAL_TURNS * TRIAL_BLOCKS <= BLOCKS_MIN);

const UNKNOWN: u8 = 0;
const SCALAR: u8 = 1;
const VECTOR: u8 = 2;

/// What the trial said. Threads that have trials at the same time may overwrite each other's answer; both are good.
static FASTEST: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Takes `blocks` into the state of one hash.
pub(super) fn compress_blocks(state: &mut [u32; 4], blocks: &[Block]) {
    if blocks.len() < BLOCKS_MIN {
        return rounds::compress_blocks(state, blocks);
    }
    match FASTEST.load(Ordering::Relaxed) {
        SCALAR => rounds::compress_blocks(state, blocks),
        VECTOR => avx512_alone::compress_blocks(state, blocks),
        _ if !avx512_alone::is_available() => {
            FASTEST.store(SCALAR, Ordering::Relaxed);
            rounds::compress_blocks(state, blocks);
        }
        _ => {
            let (trial, rest) = blocks.split_at(2 * TRIAL_TURNS * TRIAL_BLOCKS);
            FASTEST.store(fastest(state, trial), Ordering::Relaxed);
            compress_blocks(state, rest);
        }
    }
}

/// Takes `blocks` into the state by both forms in turn, and tells which was faster.
fn fastest(state: &mut [u32; 4], blocks: &[Block]) -> u8 {
    let mut scalar = Duration::MAX;
    let mut vector = Duration::MAX;
    for turn in blocks.chunks(2 * TRIAL_BLOCKS) {
        let (first, second) = turn.split_at(turn.len() / 2);
        let start = Instant::now();
        rounds::compress_blocks(state, first);
        let between = Instant::now();
        avx512_alone::compress_blocks(state, second);
        scalar = scalar.min(between - start);
        vector = vector.min(between.elapsed());
    }
    match vector < scalar {
        true => VECTOR,
        false => SCALAR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::patterned_bytes;

    /// The twin is the scalar form, which has a slower twin of its own (`plain.rs`).
    #[test]
    fn both_forms_and_the_trial_give_the_same_state() {
        let bytes = patterned_bytes(1 + 3 * BLOCKS_MIN * size_of::<Block>(), 4);
        let (blocks, _) = bytes[1..].as_chunks();
        for count in [0, 1, 2, BLOCKS_MIN - 1, BLOCKS_MIN, 3 * BLOCKS_MIN] {
            let before = [1, 2, 3, u32::MAX];
            let mut expected = before;
            rounds::compress_blocks(&mut expected, &blocks[..count]);
            let has_vectors = avx512_alone::is_available();
            let choices = [UNKNOWN, SCALAR, VECTOR];
            for choice in choices.into_iter().filter(|&c| c != VECTOR || has_vectors) {
                FASTEST.store(choice, Ordering::Relaxed);
                let mut state = before;
                compress_blocks(&mut state, &blocks[..count]);
                assert_eq!(state, expected, "{count} blocks, choice {choice}");
            }
        }
    }
}
