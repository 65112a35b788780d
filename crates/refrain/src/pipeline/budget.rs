//! How the memory budget is shared out. What of it changes an archive's bytes depends on the budget alone.

use crate::error::Result;
use crate::pipeline::segments::EPOCH_BYTES;
use crate::tuning::{Tuning, prev_power_of_two};
use refrain_codec::{Plan, encode_memory_bytes};
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

impl Budget {
    /// Shares out the tuning's memory. `kept_frames_bytes` is what frames of older blocks take that are kept in memory.
    pub(crate) fn new(tuning: &Tuning, threads: usize, kept_frames_bytes: u64) -> Result<Budget> {
        let memory = tuning.memory_bytes;
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
        let block_bytes = tuning.rules.block_bytes;
        // Raw pages, the joined block, the coded block, and what the codec works with.
        let each = 3 * block_bytes + encode_memory(&tuning.plan, block_bytes)?;
        let blocks = (left * 2 / 3 / each.max(1)).clamp(1, 2 * threads as u64 + 2);
        left = left.saturating_sub(blocks * each);
        Ok(Budget {
            index_words: (index_bytes / 8) as usize,
            known_bytes_max: known_bytes as usize,
            cache_bytes: left,
            read_ahead_bytes: EPOCH_BYTES + ahead * 8 / 9,
            blocks_in_flight: blocks as usize,
        })
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

fn encode_memory(plan: &Plan, block_bytes: u64) -> Result<u64> {
    Ok(encode_memory_bytes(block_bytes, plan)?)
}
