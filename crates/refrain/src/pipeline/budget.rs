//! How the memory budget is shared out. What of it changes an archive's bytes depends on the budget alone.

use crate::error::Result;
use crate::pipeline::segments::EPOCH_BYTES;
use crate::tuning::{Tuning, prev_power_of_two};
use refrain_codec::encode_memory_bytes;
use refrain_longmatch::YOUNG_SHARE;

/// Words of the index, at least: a small index would miss repeats of small inputs for no gain.
const INDEX_WORDS_MIN: u64 = 1 << 16;

/// Bytes for the process itself: code, stacks, lists, tables of repeats inside epochs, frames that wait for their turn.
const OVERHEAD_BYTES: u64 = 24 << 20;

/// The shares of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Words of the index; changes the bytes.
    pub index_words: usize,
    /// Most bytes for what is known of old pages: where they begin, where they can be read again; changes the bytes.
    pub known_bytes_max: usize,
    /// Bytes of old pages kept in memory.
    pub cache_bytes: u64,
    /// Content bytes that may be read and not yet matched, one epoch at least.
    pub read_ahead_bytes: u64,
    /// Blocks that may be filled and not yet written.
    pub blocks_in_flight: usize,
}

/// What a run has to fit into its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub memory_bytes: u64,
    /// Raw bytes of a block.
    pub block_bytes: u64,
    /// What a codec works with, for one block.
    pub encode_bytes: u64,
}

impl Budget {
    /// Shares out the tuning's memory. `kept_frames_bytes` is what frames of older blocks take that are kept in memory.
    pub(crate) fn new(tuning: &Tuning, threads: usize, kept_frames_bytes: u64) -> Result<Budget> {
        let block_bytes = tuning.rules.block_bytes;
        let load = Load {
            memory_bytes: tuning.memory_bytes,
            block_bytes,
            encode_bytes: encode_memory_bytes(block_bytes, &tuning.plan)?,
        };
        Ok(Budget::of(&load, threads, kept_frames_bytes))
    }

    /// Shares out the memory of a load.
    pub(crate) fn of(load: &Load, threads: usize, kept_frames_bytes: u64) -> Budget {
        let memory = load.memory_bytes;
        let index_bytes = index_bytes(memory);
        let known_bytes = memory / 8;
        // Segments come with their anchors: 12 bytes for one position in 128, or in 32 if the data wants it so. All of an
        // epoch may be fresh: then its pages are filled before its segments are given back.
        let segments_bytes = EPOCH_BYTES + EPOCH_BYTES / 8;
        let fixed = index_bytes
            + index_bytes / YOUNG_SHARE as u64
            + known_bytes
            + OVERHEAD_BYTES
            + segments_bytes
            + EPOCH_BYTES
            + kept_frames_bytes;
        let mut left = memory.saturating_sub(fixed);
        // A second epoch lets scanning overlap matching, more smooth it: with one, two kernel trees took 14 % longer on
        // two threads.
        let ahead = (left / 3).clamp(segments_bytes / 2, 4 * segments_bytes);
        left = left.saturating_sub(ahead);
        // Raw pages, the joined block, the coded block, and what the codec works with.
        let each = 3 * load.block_bytes + load.encode_bytes;
        let blocks = (left * 2 / 3 / each.max(1)).clamp(1, 2 * threads as u64 + 2);
        left = left.saturating_sub(blocks * each);
        Budget {
            index_words: (index_bytes / 8) as usize,
            known_bytes_max: known_bytes as usize,
            cache_bytes: left,
            read_ahead_bytes: EPOCH_BYTES + ahead * 8 / 9,
            blocks_in_flight: blocks as usize,
        }
    }
}

/// An eighth of the budget; of a small budget a quarter.
///
/// First touch of the index costs more than anything else at the start of a run, and a small one stays in the cache.
fn index_bytes(memory: u64) -> u64 {
    const SMALL_BYTES: u64 = 128 << 20;
    let small = prev_power_of_two(memory / 4).min(SMALL_BYTES);
    prev_power_of_two(memory / 8)
        .max(small)
        .max(INDEX_WORDS_MIN * 8)
}
