//! Divides the memory budget. The shares that change an archive's bytes depend only on the budget,
//! not on the threads.

use crate::error::Result;
use crate::tuning::{Tuning, encoder_bytes, prev_power_of_two};
use crate::write::pipeline::history_policy::HistoryPolicy;
use crate::write::pipeline::segments::EPOCH_BYTES;
use refrain_codec::encode_memory_bytes;
use refrain_longmatch::SMALL_INDEX_SHARE;

/// The minimum number of index words: a smaller index would miss repeats in small inputs without
/// saving noticeable memory.
const INDEX_WORDS_MIN: u64 = 1 << 16;

/// Bytes for the process itself: code, stacks, lists, tables of repeats inside epochs, frames
/// waiting to be written.
const OVERHEAD_BYTES: u64 = 24 << 20;

/// Bytes for the stack and private buffers of a thread, and of all threads. The latter is reserved
/// for any number of threads, because shares that change the bytes must not depend on it.
const THREAD_BYTES: u64 = 2 << 20;
const THREADS_BYTES_MAX: u64 = 16 << 20;

/// The minimum memory for old pages, in bytes.
const CACHE_BYTES_MIN: u64 = 8 << 20;

/// Bytes for old pages even where other shares leave nothing: without any, a page is read from its
/// files again for each repeat compared with it (86 versions of a package with 128 MiB did not
/// finish in 100 s; with 3 to 6 MiB for pages they took 9 to 14 s, and 4 s with 1 GiB).
const CACHE_BYTES_LEAST: u64 = 4 << 20;

/// Bytes for old pages in memory if the others are read from a temporary file; see
/// `REREAD_CACHE_BYTES` in `run.rs`.
const SPILL_CACHE_BYTES: u64 = 64 << 20;

/// The maximum bytes of pages that wait in memory before they are written to a temporary file:
/// shorter inputs need no file. More would mostly touch fresh memory: a kernel tree and 2 GB of
/// disk images from a pipe took the same processor time with 64 as with 256 MiB, and a quarter of a
/// GB less.
const SPILL_WAITING_BYTES_MAX: u64 = 128 << 20;

/// The maximum number of epochs to read ahead: each has sixteen segments to scan, and every thread
/// should find some. With four epochs two threads were no faster, and 256 MiB of incompressible
/// data took a tenth longer because of fresh memory (a sixteenth of a gigabyte).
fn epochs_ahead(threads: u64) -> u64 {
    threads.div_ceil(8).clamp(2, 4)
}

/// The shares of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Words of the index. Changes the archive's bytes.
    pub index_words: usize,
    /// Maximum bytes of the table of continuations, 0 for none. Changes the archive's bytes.
    pub continuations_bytes: usize,
    /// Maximum bytes for the descriptions of old pages: where they start, and where they can be
    /// read again. Changes the archive's bytes.
    pub known_bytes_max: usize,
    /// Bytes for old pages in memory.
    pub cache_bytes: u64,
    /// Bytes for pages waiting to be written to a temporary file, 0 without one.
    pub spill_waiting_bytes: u64,
    /// Bytes for members read before their turn.
    pub later_members_bytes: u64,
    /// Where store bytes are read again.
    pub history: HistoryPolicy,
    /// Bytes for compressed copies, 0 if the policy makes none. Changes the archive's bytes.
    pub copies_bytes: u64,
    /// Content bytes that fill an epoch. Changes the archive's bytes.
    pub epoch_bytes: u64,
    /// Content bytes that may be read and not yet matched, at least one epoch.
    pub read_ahead_bytes: u64,
    /// Blocks that may be filled and not yet written before reading pauses.
    pub blocks_in_flight: usize,
    /// Blocks that may be encoded at once.
    pub encoders: usize,
}

/// What has to fit into a run's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub memory_bytes: u64,
    /// Raw bytes of a block.
    pub block_bytes: u64,
    /// Memory of the codec while it encodes one block.
    pub encode_bytes: u64,
    /// Bytes needed besides the shares: frames of blocks, logs of directories, blocks that wait for
    /// others.
    pub retained_bytes: u64,
    /// Maximum bytes of the table of continuations.
    pub continuations_bytes: u64,
    pub history: HistoryPolicy,
    /// Whether old pages go to a temporary file.
    pub spills: bool,
    /// Whether some members may be read before their turn.
    pub reads_later_members: bool,
}

/// Memory for compressed copies: five sixteenths, so that two kernel trees (1.1 GB of store, 0.27
/// GB compressed) fit the budget of level 8. Less if two blocks of `each` bytes, or at least one,
/// would not fit into what is `left`.
fn copies_bytes(memory: u64, left: u64, each: u64) -> u64 {
    let wanted = memory / 16 * 5;
    let beside = |blocks: u64| left.saturating_sub(blocks * each);
    let bytes = if beside(2) >= wanted / 2 { beside(2) } else { beside(1) };
    bytes.clamp(memory / 32, wanted)
}

/// Memory for members read before their turn, in bytes, even if many threads leave nothing for old
/// pages.
const LATER_MEMBERS_BYTES_LEAST: u64 = 64 << 20;

/// Additional memory for members read before their turn, out of what is `left` for them and old
/// pages: what old pages do not need if they go to a temporary file; at least a half, up to a
/// quarter of the memory.
fn later_members_bytes(left: u64, memory: u64, spills: bool) -> u64 {
    let of_pages = if spills { SPILL_CACHE_BYTES + SPILL_WAITING_BYTES_MAX } else { left };
    let least = (left / 2).min(memory / 4);
    let bytes = left.saturating_sub(of_pages).max(least);
    bytes.min(left.saturating_sub(CACHE_BYTES_MIN))
}

impl Budget {
    pub(crate) fn new(
        tuning: &Tuning,
        threads: usize,
        retained_bytes: u64,
        history: HistoryPolicy,
        spills: bool,
        reads_later_members: bool,
    ) -> Result<Budget> {
        let block_bytes = tuning.rules.block_bytes;
        let load = Load {
            memory_bytes: tuning.memory_bytes,
            block_bytes,
            encode_bytes: encode_memory_bytes(block_bytes, &tuning.plan)?,
            retained_bytes,
            continuations_bytes: tuning.continuations_bytes,
            history,
            spills,
            reads_later_members,
        };
        Ok(Budget::for_load(&load, threads))
    }

    pub(crate) fn for_load(load: &Load, threads: usize) -> Budget {
        let memory = load.memory_bytes;
        let threads = threads.max(1) as u64;
        let index_bytes = if load.history.retains_frames() {
            index_bytes_of_large(memory)
        } else {
            index_bytes(memory)
        };
        let makes_copies = load.history.makes_copies();
        // Compressed copies reach back only a limited distance, so few pages have to be described.
        // The description of a page without a source is small.
        let known_bytes = match load.history {
            HistoryPolicy::Copies(_) => memory / 64,
            HistoryPolicy::Blocks(_) => memory / 32,
            HistoryPolicy::Sources | HistoryPolicy::SourcesAndBlocks => memory / 8,
        };
        // Segments come with their anchors: 12 bytes for one position in 128, or in 32 for data
        // that needs it. All of an epoch may be fresh: then its pages are filled before its
        // segments are returned.
        let segments_bytes = EPOCH_BYTES + EPOCH_BYTES / 8;
        let fixed = index_bytes
            + index_bytes / SMALL_INDEX_SHARE as u64
            + known_bytes
            + OVERHEAD_BYTES
            + segments_bytes
            + EPOCH_BYTES
            + load.continuations_bytes
            + load.retained_bytes;
        let left = memory.saturating_sub(fixed);
        let copy = if !makes_copies { 0 } else { load.block_bytes / 2 };
        let encoder = encoder_bytes(load.block_bytes, load.encode_bytes) + copy;
        let block = load.block_bytes.max(1);
        let least = segments_bytes / 2 + CACHE_BYTES_MIN + THREADS_BYTES_MAX;
        let copies_bytes = if !makes_copies {
            0
        } else {
            copies_bytes(memory, left.saturating_sub(least), encoder + block)
        };
        let left = left.saturating_sub(copies_bytes);
        // A second epoch lets scanning overlap matching: with one, two kernel trees took 14 %
        // longer on two threads. But two encoders are worth more.
        let two = 2.min(threads) * (encoder + block);
        let ahead_max = left.saturating_sub(two + CACHE_BYTES_MIN);
        let ahead = (left / 3)
            .min(ahead_max)
            .clamp(segments_bytes / 2, epochs_ahead(threads) * segments_bytes);
        let left = left.saturating_sub(ahead);
        let later_least = if !load.reads_later_members {
            0
        } else {
            left.saturating_sub(two + CACHE_BYTES_MIN)
        };
        let later_least = later_least.min(left / 8).min(LATER_MEMBERS_BYTES_LEAST);
        let left = left - later_least;
        // Where copies of old blocks have their own memory, pages need less.
        let for_blocks = if !makes_copies { left / 3 * 2 } else { left / 8 * 7 };
        let for_blocks = for_blocks.max(two.min(left.saturating_sub(CACHE_BYTES_MIN)));
        let encoders = (for_blocks / (encoder + block)).clamp(1, threads);
        let blocks = for_blocks.saturating_sub(encoders * encoder) / block;
        let blocks = blocks.clamp(encoders, 2 * threads + 2);
        let of_threads = (threads * THREAD_BYTES).min(THREADS_BYTES_MAX);
        let left = left.saturating_sub(encoders * encoder + blocks * block + of_threads);
        // Pages being written to a temporary file are in no other share.
        let left = if !load.spills { left } else { left.saturating_sub(encoders * block) };
        let later_members_bytes = if !load.reads_later_members {
            0
        } else {
            later_members_bytes(left, memory, load.spills)
        };
        let left = left - later_members_bytes;
        let later_members_bytes = later_least + later_members_bytes;
        let (cache_bytes, spill_waiting_bytes) = if !load.spills {
            (left.max(CACHE_BYTES_LEAST), 0)
        } else {
            let cache_bytes = SPILL_CACHE_BYTES.min(left / 2);
            (cache_bytes, SPILL_WAITING_BYTES_MAX.min(left - cache_bytes))
        };
        Budget {
            history: load.history,
            index_words: (index_bytes / 8) as usize,
            continuations_bytes: load.continuations_bytes as usize,
            known_bytes_max: known_bytes as usize,
            cache_bytes,
            spill_waiting_bytes,
            later_members_bytes,
            copies_bytes,
            epoch_bytes: EPOCH_BYTES,
            read_ahead_bytes: EPOCH_BYTES + ahead * 8 / 9,
            blocks_in_flight: blocks as usize,
            encoders: encoders as usize,
        }
    }
}

/// An eighth of the budget; a quarter of a small budget, except the smallest.
///
/// First touch of the index costs more than anything else at the start of a run, and a small one
/// stays in the cache.
fn index_bytes(memory: u64) -> u64 {
    const SMALL_BYTES: u64 = 128 << 20;
    const SMALLEST_BYTES: u64 = 256 << 20;
    let small = if memory < SMALLEST_BYTES {
        0
    } else {
        prev_power_of_two(memory / 4).min(SMALL_BYTES)
    };
    index_bytes_of_large(memory).max(small)
}

fn index_bytes_of_large(memory: u64) -> u64 {
    prev_power_of_two(memory / 8).max(INDEX_WORDS_MIN * 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::levels;
    use crate::options::{CompressOptions, Level, Purpose};
    use crate::write::pipeline::history_policy::BlockFrames;

    const MIB: u64 = 1 << 20;

    const COPIES: HistoryPolicy = HistoryPolicy::Copies(BlockFrames::InArchive);
    const POLICIES: [HistoryPolicy; 2] = [HistoryPolicy::Sources, COPIES];

    fn budget(level: u8, memory_mib: u64, threads: usize, history: HistoryPolicy) -> (Budget, u64) {
        let options = CompressOptions {
            level: Level(level),
            memory_bytes: Some(memory_mib * MIB),
            ..CompressOptions::default()
        };
        let tuning = Tuning::new(&options).expect("a level");
        let budget = Budget::new(
            &tuning,
            threads,
            0,
            history,
            false,
            memory_mib.is_multiple_of(3),
        )
        .expect("known codecs");
        let block_bytes = tuning.rules.block_bytes;
        let encode_bytes = encode_memory_bytes(block_bytes, &tuning.plan).expect("known codecs");
        let encoders = budget.encoders as u64 * encoder_bytes(block_bytes, encode_bytes);
        let all = budget.index_words as u64 * 8
            + budget.known_bytes_max as u64
            + budget.copies_bytes
            + budget.cache_bytes
            + budget.later_members_bytes
            + budget.read_ahead_bytes
            + encoders
            + budget.blocks_in_flight as u64 * block_bytes;
        (budget, all)
    }

    #[test]
    fn the_sum_of_all_shares_fits_the_memory() {
        for level in levels(Purpose::Archive) {
            for memory_mib in [512, 1024, 2048, 8192] {
                for threads in [1, 2, 7, 64] {
                    for history in POLICIES {
                        let (budget, all) = budget(level.number, memory_mib, threads, history);
                        let number = level.number;
                        assert!(
                            all <= memory_mib * MIB,
                            "level {number}, {memory_mib} MiB, {threads}: {budget:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn shares_that_change_the_bytes_do_not_depend_on_threads() {
        for level in 1..=9 {
            for memory_mib in [128, 300, 1024] {
                let shape = |threads| {
                    let budget = budget(level, memory_mib, threads, COPIES).0;
                    (
                        budget.index_words,
                        budget.known_bytes_max,
                        budget.copies_bytes,
                    )
                };
                assert_eq!(shape(1), shape(64));
            }
        }
    }

    #[test]
    fn two_encoders_fit_the_default_memory_and_half_of_it() {
        for level in levels(Purpose::Archive) {
            for history in POLICIES {
                let default_mib = level.memory_bytes / MIB;
                assert!(budget(level.number, default_mib, 2, history).0.encoders == 2);
            }
        }
        assert_eq!(budget(8, 512, 2, HistoryPolicy::Sources).0.encoders, 2);
    }
    #[test]
    fn members_that_are_read_before_their_turn_take_nothing_that_changes_the_bytes() {
        for level in levels(Purpose::Archive) {
            for (memory_bytes, threads) in [(level.memory_bytes, 2), (128 * MIB, 1), (1 << 32, 64)]
            {
                for (history, spills) in [
                    (HistoryPolicy::Blocks(BlockFrames::InArchive), true),
                    (HistoryPolicy::Blocks(BlockFrames::InArchive), false),
                    (COPIES, true),
                    (COPIES, false),
                ] {
                    let options = CompressOptions {
                        level: Level(level.number),
                        memory_bytes: Some(memory_bytes),
                        ..CompressOptions::default()
                    };
                    let tuning = Tuning::new(&options).expect("a level");
                    let of = |later| Budget::new(&tuning, threads, 0, history, spills, later);
                    let (without, with) = (of(false).expect("fits"), of(true).expect("fits"));
                    assert_eq!(without.later_members_bytes, 0);
                    if memory_bytes >= level.memory_bytes {
                        let most = with.later_members_bytes;
                        assert!(most >= 24 * MIB, "level {}: {with:?}", level.number);
                    }
                    let shape = |budget: Budget| {
                        let (index, known) = (budget.index_words, budget.known_bytes_max);
                        let (continuations, copies) =
                            (budget.continuations_bytes, budget.copies_bytes);
                        (index, known, continuations, copies, budget.epoch_bytes)
                    };
                    assert_eq!(shape(with), shape(without));
                    assert_eq!(with.read_ahead_bytes, without.read_ahead_bytes);
                    assert!(with.encoders >= without.encoders.min(2), "{with:?}");
                    if (threads, spills) == (2, true) {
                        let (level, later) = (level.number, with.later_members_bytes / MIB);
                        println!("level {level}, {history:?}: {later} MiB for later members");
                    }
                }
            }
        }
    }
}
