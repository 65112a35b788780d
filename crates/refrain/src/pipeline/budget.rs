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
    /// Bytes of packed copies of old blocks kept in memory; changes the bytes of archives.
    pub packed_bytes: u64,
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
    /// What older blocks take that are kept in memory.
    pub kept: KeptBytes,
}

/// Memory for older blocks of content that cannot be read twice.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct KeptBytes {
    /// As they are in the archive.
    pub frames: u64,
    /// Whether packed copies are kept: the blocks themselves open slowly.
    pub packed: bool,
}

/// Memory for packed copies: five sixteenths, so that two kernel trees (1.1 GB of store, 0.27 GB packed) fit the budget of level 8.
/// Less of it where blocks of `each` bytes would not find room in what is `left`, for two of them or at least for one.
fn packed_bytes(memory: u64, left: u64, each: u64) -> u64 {
    let wanted = memory / 16 * 5;
    let beside = |blocks: u64| left.saturating_sub(blocks * each * 3 / 2);
    let bytes = match beside(2) >= wanted / 2 {
        true => beside(2),
        false => beside(1),
    };
    bytes.clamp(memory / 32, wanted)
}

impl Budget {
    /// Shares out the tuning's memory.
    pub(crate) fn new(tuning: &Tuning, threads: usize, kept: KeptBytes) -> Result<Budget> {
        let block_bytes = tuning.rules.block_bytes;
        let load = Load {
            memory_bytes: tuning.memory_bytes,
            block_bytes,
            encode_bytes: encode_memory_bytes(block_bytes, &tuning.plan)?,
            kept,
        };
        Ok(Budget::of(&load, threads))
    }

    /// Shares out the memory of a load.
    pub(crate) fn of(load: &Load, threads: usize) -> Budget {
        let memory = load.memory_bytes;
        let index_bytes = index_bytes(memory);
        // Packed copies reach only so far, so little has to be known of pages.
        let known_bytes = match load.kept.packed {
            false => memory / 8,
            true => memory / 64,
        };
        // Segments come with their anchors: 12 bytes for one position in 128, or in 32 if the data wants it so. All of an
        // epoch may be fresh: then its pages are filled before its segments are given back.
        let segments_bytes = EPOCH_BYTES + EPOCH_BYTES / 8;
        let fixed = index_bytes
            + index_bytes / YOUNG_SHARE as u64
            + known_bytes
            + OVERHEAD_BYTES
            + segments_bytes
            + EPOCH_BYTES
            + load.kept.frames;
        let mut left = memory.saturating_sub(fixed);
        // Raw pages, the joined block, the coded block, and what the codec works with; a packed copy.
        let each = 3 * load.block_bytes + load.encode_bytes;
        let each = match load.kept.packed {
            false => each,
            true => each + load.block_bytes / 2,
        };
        let packed_bytes = match load.kept.packed {
            false => 0,
            true => packed_bytes(memory, left, each),
        };
        left = left.saturating_sub(packed_bytes);
        // A second epoch lets scanning overlap matching, more smooth it: with one, two kernel trees took 14 % longer on
        // two threads.
        let ahead = (left / 3).clamp(segments_bytes / 2, 4 * segments_bytes);
        left = left.saturating_sub(ahead);
        // Where old blocks have memory of their own, pages need less.
        let for_blocks = match load.kept.packed {
            false => left / 3 * 2,
            true => left / 8 * 7,
        };
        let blocks = (for_blocks / each.max(1)).clamp(1, 2 * threads as u64 + 2);
        left = left.saturating_sub(blocks * each);
        Budget {
            index_words: (index_bytes / 8) as usize,
            known_bytes_max: known_bytes as usize,
            cache_bytes: left,
            packed_bytes,
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
