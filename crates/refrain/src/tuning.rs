//! The tuning of a run: a row of the level table, modified by the caller's options.

use refrain_codec::{
    BlockPlan, CodecId, FilterPlan, MAX_RAW_LENGTH_BYTES, Settings, TunedCodec, by_id, by_name,
    encode_memory_bytes, fits_memory,
};
use refrain_longmatch::Rules;

use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::levels::{LevelRow, level_row};
use crate::options::{CompressOptions, Level};
use crate::store::page::PAGE_BYTES;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The settings that a run works with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// The level of the row; lower than requested if memory is short.
    pub level: u8,
    pub rules: Rules,
    pub plan: BlockPlan,
    /// Blocks get the codec's long-distance mode if at least one in this many fresh bytes repeats
    /// bytes within the codec's window.
    pub near_one_in: Option<u64>,
    /// The maximum bytes of the table of continuations; 0 disables it.
    pub continuations_bytes: u64,
    pub memory_bytes: u64,
}

/// The table of continuations may take 1/64 of the memory budget: a million of them in 1 GiB.
const CONTINUATIONS_SHARE: u64 = 64;

/// Entries are written at least this often, in bytes of content, for readers of truncated archives.
/// Each run of entries costs a frame, and rows of the index.
pub(crate) const RUN_BYTES_MAX: u64 = 64 * MIB;

/// Smallest memory budget that works, in bytes.
pub const MEMORY_BYTES_MIN: u64 = 128 * MIB;

impl Tuning {
    pub(crate) fn new(options: &CompressOptions) -> Result<Tuning> {
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        let row = level_row(options.purpose, options.level).ok_or_else(|| {
            usage(format!(
                "there is no level {}; levels are 1 to 9",
                options.level.0
            ))
        })?;
        let memory_bytes = options.memory_bytes.unwrap_or(row.memory_bytes);
        if memory_bytes < MEMORY_BYTES_MIN {
            let message = format!(
                "a memory budget of {} is too small: at least {} are needed",
                mebibytes(memory_bytes),
                mebibytes(MEMORY_BYTES_MIN)
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        // If a level's codec does not fit into memory, the next lower level whose codec does is
        // used: the blocks' fallback codec would make larger archives.
        let mut tuning = Tuning::from_row(row, options, memory_bytes)?;
        while options.codec.is_none()
            && !fits_memory(tuning.rules.block_bytes, &tuning.plan)?
            && let Some(lower) = level_row(options.purpose, Level(tuning.level - 1))
        {
            tuning = Tuning::from_row(lower, options, memory_bytes)?;
        }
        Ok(tuning)
    }

    fn from_row(row: &LevelRow, options: &CompressOptions, memory_bytes: u64) -> Result<Tuning> {
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        let (codec, codec_level) = match &options.codec {
            None => (row.codec, Some(row.codec_level)),
            Some(choice) => {
                let codec = by_name(&choice.name)
                    .ok_or_else(|| usage(format!("there is no codec '{}'", choice.name)))?;
                let id = codec.describe().id;
                (
                    id,
                    choice
                        .level
                        .or((id == row.codec).then_some(row.codec_level)),
                )
            }
        };
        let level = codec_level.unwrap_or(by_id(codec)?.describe().default_level);
        let near_one_in = long_distance_from_one_in(codec, level);
        let settings = Settings {
            level: Some(level),
            // Only for blocks in which the match stage finds many near repeats: see
            // `store/block.rs`.
            long_distance: near_one_in.is_some(),
            ..Settings::default()
        };
        if options.filters.is_some() && codec == CodecId::NONE {
            return Err(usage("filters need a codec".to_owned()));
        }
        let may_compete = options.codec.is_none();
        let plan = |block_bytes: u64| BlockPlan {
            codec,
            settings,
            rivals: row.rivals.map(|of_row| {
                let of_row = of_row.filter(|_| may_compete);
                of_row.map(|(codec, level)| rival(codec, level, block_bytes))
            }),
            filters: match options.filters {
                Some(filters) => FilterPlan::Fixed(filters),
                None if codec == CodecId::NONE => FilterPlan::None,
                None => FilterPlan::Trial,
            },
            memory_limit_bytes: codec_memory_bytes(codec, memory_bytes),
        };
        let block_bytes = block_bytes(row, options.block_bytes, memory_bytes, plan)?;
        let plan = plan(block_bytes);
        let rules = Rules {
            // Without a codec speed matters most: half the anchors, which find a little less (the
            // store of two kernel trees grew from 1.11 to 1.17 GB).
            anchor_bits: row.anchor_bits + u32::from(codec == CodecId::NONE),
            far_min: row.far_min,
            near_min: near_bytes_min(codec),
            near_window: codec_window_bytes(codec, level).min(block_bytes),
            block_bytes,
            run_min: 1024,
            resume_spacing: resume_spacing(memory_bytes),
        };
        Ok(Tuning {
            level: row.number,
            rules,
            plan,
            near_one_in,
            continuations_bytes: memory_bytes / CONTINUATIONS_SHARE,
            memory_bytes,
        })
    }
}

/// The memory limit of one block's codec: a quarter of the memory or, if memory is small, a third
/// of what everything else leaves.
///
/// The codec of level 9 takes 77 MiB for any block; with a third of the memory it works with 256
/// MiB or more.
fn codec_memory_bytes(codec: CodecId, memory_bytes: u64) -> u64 {
    const ALL_ELSE_BYTES: u64 = 44 * MIB;
    match codec {
        CodecId::CM => memory_bytes / 3,
        _ => (memory_bytes / 4).min((memory_bytes - ALL_ELSE_BYTES) / 3),
    }
}

/// A codec that competes with the level's. With a dictionary of half a block LZMA needs little more
/// memory, so that two encoders fit: 490 MB of programs at level 8 take 107.8 MB instead of 107.5.
fn rival(codec: CodecId, level: i32, block_bytes: u64) -> TunedCodec {
    TunedCodec {
        codec,
        settings: Settings {
            window_log: Some(block_bytes.ilog2() - 1),
            ..Settings::level(level)
        },
    }
}

/// The requested block size, or the row's, reduced to what the budget allows.
fn block_bytes(
    row: &LevelRow,
    requested: Option<u64>,
    memory_bytes: u64,
    plan: impl Fn(u64) -> BlockPlan,
) -> Result<u64> {
    let Some(requested) = requested else {
        // Blocks of a thirty-second of the budget leave room for several at once, including the
        // memory of most codecs.
        let block_bytes = row.block_bytes.min(prev_power_of_two(memory_bytes / 32));
        let is_room_for_two = |block_bytes: u64, share_in_32: u64| {
            let encode_bytes = encode_memory_bytes(block_bytes, &plan(block_bytes))?;
            let each = encoder_bytes(block_bytes, encode_bytes) + block_bytes;
            Ok::<_, Error>(2 * each <= memory_bytes / 32 * share_in_32)
        };
        // Two small blocks are encoded in half the time of a large one.
        return Ok(
            if !is_room_for_two(block_bytes, 13)? && is_room_for_two(block_bytes / 2, 14)? {
                block_bytes / 2
            } else {
                block_bytes
            },
        );
    };
    let page_bytes = PAGE_BYTES as u64;
    if requested % page_bytes != 0 || !(page_bytes..=MAX_RAW_LENGTH_BYTES).contains(&requested) {
        let message = format!(
            "a block size of {requested} bytes is not possible: use a multiple of {} KiB up to {}",
            page_bytes >> 10,
            mebibytes(MAX_RAW_LENGTH_BYTES)
        );
        return Err(Error::new(ErrorKind::Usage, message));
    }
    // Larger blocks would leave no room for a second block and the codec.
    let allowed = memory_bytes / 16;
    if requested > allowed {
        return Err(Error::limit(format!(
            "a block size of {} is too large for a memory budget of {}: at most {} are possible",
            mebibytes(requested),
            mebibytes(memory_bytes),
            mebibytes(allowed)
        )));
    }
    Ok(requested)
}

/// The memory of one encoder, in addition to the pages of its block: the joined block, its encoded
/// bytes, and the memory of the codec.
pub(crate) fn encoder_bytes(block_bytes: u64, encode_bytes: u64) -> u64 {
    block_bytes + block_bytes / 2 + encode_bytes
}

/// The largest power of two that is at most `number`; 1 for 0.
pub(crate) fn prev_power_of_two(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

/// How close pieces of repeats may be, in bytes. All extents of an epoch are in memory at once, and
/// 16 MiB of the densest pieces make half a million of them, 20 MB.
pub(crate) fn resume_spacing(memory_bytes: u64) -> u32 {
    const DENSEST: u32 = 64;
    const DENSEST_FROM_BYTES: u64 = 1 << 30;
    DENSEST * DENSEST_FROM_BYTES.div_ceil(memory_bytes) as u32
}

/// The share of near repeats, as one in this many bytes, above which the codec's long-distance mode
/// is worth its time in a block: the codec's own tables are so small that they lose near repeats.
/// `None` if it is never worth it.
///
/// One in 8 selects the blocks of JSON (13 to 24 in 100; 7.78 MB with it at level 1, 8.54 without)
/// and some others. With one in 32, which also selects nearly all blocks of kernel trees and text,
/// two kernel trees take 1 % less, but a fifth more processor time (level 1 with zstd's own table
/// 217.0 MB and 4.8 s -> 214.6 MB and 5.7 s; a larger table, see the codec's `hash_log`, does more
/// for less). At level 3 one in 16 takes 0.3 % off and stays below zstd -3 --long=31. Not at zstd 5
/// and above: kernel trees 178.6 MB without, 181.9 with it for all.
fn long_distance_from_one_in(codec: CodecId, level: i32) -> Option<u64> {
    match (codec, level) {
        (CodecId::ZSTD, ..=2) => Some(8),
        (CodecId::ZSTD, 3) => Some(16),
        _ => None,
    }
}

/// The shortest repeat within the codec's window that becomes an extent, in bytes.
///
/// An extent costs about 3 bytes at the dense levels and interrupts the context; a repeat that is
/// left to bwt2 costs less than one left to cm, and cm takes time for each byte. 24 releases of
/// typescript at level 8 with 4096, 2048, 1536 and 1024: 4.04, 4.01, 4.00 and 3.99 MB; 79 MB of
/// JSON 4.206, 4.205, 4.205 and 4.228. At level 9 with 4096, 1024, 768 and 512: 3.97, 3.45, 3.34
/// and 3.22 MB; 10 MB of JSON 387.5, 387.5, 387.5 and 389.7 kB. Text, logs and kernel trees differ
/// by less than 0.15 %.
fn near_bytes_min(codec: CodecId) -> u32 {
    match codec {
        CodecId::CM => 768,
        CodecId::BWT | CodecId::BWT2 => 1536,
        _ => 4096,
    }
}

/// How far back a codec itself finds repeats, in bytes. Repeats within that distance are left to
/// it.
fn codec_window_bytes(codec: CodecId, level: i32) -> u64 {
    match codec {
        CodecId::NONE => 0,
        CodecId::LZ4 => 64 * KIB,
        CodecId::DEFLATE => 32 * KIB,
        CodecId::BZIP2 => 900 * 1000,
        // The library's default windows: larger ones are not searched at the fast levels.
        CodecId::ZSTD if level <= 1 => 512 * KIB,
        CodecId::ZSTD if level <= 2 => MIB,
        CodecId::ZSTD if level <= 8 => 2 * MIB,
        CodecId::ZSTD if level <= 12 => 4 * MIB,
        CodecId::ZSTD if level <= 16 => 8 * MIB,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::levels;
    use crate::options::{CodecChoice, Purpose};

    #[test]
    fn every_level_makes_a_tuning() {
        let rows = |purpose| {
            levels(purpose)
                .iter()
                .enumerate()
                .map(move |row| (purpose, row))
        };
        for (purpose, (index, row)) in rows(Purpose::Archive).chain(rows(Purpose::Serve)) {
            assert_eq!(usize::from(row.number), index + 1);
            let codec = by_id(row.codec).expect("a codec of this build").describe();
            assert!(codec.levels.contains(&row.codec_level));
            let options = CompressOptions {
                level: Level(row.number),
                purpose,
                ..CompressOptions::default()
            };
            let tuning = Tuning::new(&options).expect("a tuning");
            assert_eq!(
                tuning.rules.block_bytes, row.block_bytes,
                "the default budget holds the level's block"
            );
        }
    }

    #[test]
    fn a_level_that_does_not_fit_becomes_the_next_lower_one_that_does() {
        let of = |level, memory_mib, codec: Option<&str>| {
            let codec = codec.map(|name| CodecChoice {
                name: name.into(),
                level: None,
            });
            let tuning = Tuning::new(&CompressOptions {
                level: Level(level),
                memory_bytes: Some(memory_mib * MIB),
                codec,
                ..CompressOptions::default()
            });
            let tuning = tuning.expect("a tuning");
            (tuning.level, tuning.plan.codec)
        };
        assert_eq!(of(9, 256, None), (9, CodecId::CM));
        assert_eq!(of(9, 128, None), (8, CodecId::BWT2));
        assert_eq!(of(9, 128, Some("cm")), (9, CodecId::CM));
        for level in 1..=8 {
            assert_eq!(of(level, 128, None).0, level);
        }
    }

    #[test]
    fn options_change_the_row_and_invalid_ones_return_errors() {
        let base = CompressOptions::default;
        let other = CodecChoice {
            name: "lz4".into(),
            level: None,
        };
        let tuning = Tuning::new(&CompressOptions {
            codec: Some(other),
            ..base()
        })
        .expect("a tuning");
        assert_eq!(tuning.plan.codec, CodecId::LZ4);
        let small = Tuning::new(&CompressOptions {
            memory_bytes: Some(MEMORY_BYTES_MIN),
            ..base()
        });
        assert!(small.expect("a tuning").rules.block_bytes <= MEMORY_BYTES_MIN / 32);
        let blocks = |block_bytes| CompressOptions {
            block_bytes: Some(block_bytes),
            ..base()
        };
        let large = Tuning::new(&blocks(48 * MIB)).expect("a tuning");
        assert_eq!(large.rules.block_bytes, 48 * MIB);
        for wrong in [
            blocks(0),
            blocks(100_000),
            blocks(128 * MIB),
            blocks(2 << 30),
            CompressOptions {
                level: Level(0),
                ..base()
            },
            CompressOptions {
                level: Level(10),
                ..base()
            },
            CompressOptions {
                memory_bytes: Some(1),
                ..base()
            },
        ] {
            assert!(Tuning::new(&wrong).is_err());
        }
    }
}
