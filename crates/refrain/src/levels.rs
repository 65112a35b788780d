//! The level table: a level is a row, and nothing else in the engine asks which level it is.

use refrain_codec::{CodecId, Plan, Settings, by_id, by_name};
use refrain_longmatch::Rules;

use crate::error::{Error, ErrorKind, Result};
use crate::options::CompressOptions;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// One level.
#[derive(Debug, Clone, Copy)]
pub struct LevelRow {
    /// 1 to 9.
    pub number: u8,
    /// Codec of the store's blocks.
    pub codec: CodecId,
    /// In the codec's own scale.
    pub codec_level: i32,
    /// Bytes of the store in one block, at most: what the codec sees at once, and what a random read may have to open.
    pub block_bytes: u64,
    /// One position in `2^anchor_bits` is an anchor.
    pub anchor_bits: u32,
    /// Shortest far repeat that becomes an extent, in bytes.
    pub far_min: u32,
    /// Memory budget unless another is asked for, in bytes.
    pub memory_bytes: u64,
}

const fn row(
    number: u8,
    codec: CodecId,
    codec_level: i32,
    block_mib: u64,
    anchor_bits: u32,
    far_min: u32,
    memory_mib: u64,
) -> LevelRow {
    let (block_bytes, memory_bytes) = (block_mib * MIB, memory_mib * MIB);
    LevelRow {
        number,
        codec,
        codec_level,
        block_bytes,
        anchor_bits,
        far_min,
        memory_bytes,
    }
}

/// All levels, fastest first.
static LEVELS: [LevelRow; 9] = [
    row(1, CodecId::ZSTD, 1, 4, 7, 192, 1024),
    row(2, CodecId::ZSTD, 2, 4, 7, 192, 1024),
    row(3, CodecId::ZSTD, 3, 4, 7, 192, 1024),
    row(4, CodecId::ZSTD, 5, 8, 7, 192, 1024),
    row(5, CodecId::ZSTD, 6, 16, 7, 192, 1024),
    row(6, CodecId::ZSTD, 8, 32, 7, 192, 1024),
    row(7, CodecId::ZSTD, 12, 32, 7, 192, 1024),
    row(8, CodecId::BWT, 1, 16, 7, 512, 1024),
    row(9, CodecId::PPMD, 9, 64, 7, 192, 2048),
];

/// All levels, fastest first.
pub fn levels() -> &'static [LevelRow] {
    &LEVELS
}

/// What a run works with: the level's row, changed by the caller's options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub level: u8,
    pub rules: Rules,
    pub plan: Plan,
    pub memory_bytes: u64,
}

/// Smallest memory budget that works, in bytes.
pub const MEMORY_BYTES_MIN: u64 = 128 * MIB;

impl Tuning {
    pub(crate) fn new(options: &CompressOptions) -> Result<Tuning> {
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        let row = LEVELS.iter().find(|row| row.number == options.level.0);
        let row = row.ok_or_else(|| {
            usage(format!(
                "there is no level {}; levels are 1 to 9",
                options.level.0
            ))
        })?;
        let memory_bytes = options.memory_bytes.unwrap_or(row.memory_bytes);
        if memory_bytes < MEMORY_BYTES_MIN {
            let message = format!(
                "a memory budget of {memory_bytes} bytes is too small: at least {MEMORY_BYTES_MIN}"
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
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
        // A block of a thirty-second of the budget leaves room for several at once, with their codecs' memory.
        let block_bytes = row
            .block_bytes
            .min(prev_power_of_two(memory_bytes / 32))
            .max(MIB);
        let settings = Settings {
            level: Some(level),
            ..Settings::default()
        };
        let plan = Plan {
            codec,
            settings,
            filter_trial: codec != CodecId::NONE,
            memory_limit_bytes: memory_bytes / 4,
        };
        let rules = Rules {
            // Without a codec time is what counts: half the anchors. It finds a little less: the store of two kernel
            // trees grew from 1.11 to 1.17 GB.
            anchor_bits: row.anchor_bits + u32::from(codec == CodecId::NONE),
            far_min: row.far_min,
            near_min: 4096,
            near_window: codec_sight(codec, level).min(block_bytes),
            block_bytes,
            run_min: 1024,
        };
        Ok(Tuning {
            level: row.number,
            rules,
            plan,
            memory_bytes,
        })
    }
}

/// The largest power of two that is not above `number`; 1 for 0.
pub(crate) fn prev_power_of_two(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

/// How far back a codec finds repeats by itself, in bytes: nearer ones are left to it.
fn codec_sight(codec: CodecId, level: i32) -> u64 {
    match codec {
        CodecId::NONE => 0,
        CodecId::LZ4 => 64 * KIB,
        CodecId::DEFLATE => 32 * KIB,
        CodecId::BZIP2 => 900 * 1000,
        // The library's own windows: a larger one is not searched at the fast levels.
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
    use crate::options::{CodecChoice, Level};

    #[test]
    fn every_level_is_a_valid_row() {
        for (index, row) in levels().iter().enumerate() {
            assert_eq!(usize::from(row.number), index + 1);
            let codec = by_id(row.codec).expect("a codec of this build").describe();
            assert!(codec.levels.contains(&row.codec_level));
            assert!(
                row.block_bytes.is_power_of_two()
                    && row.block_bytes <= refrain_codec::MAX_RAW_LENGTH_BYTES
            );
            let options = CompressOptions {
                level: Level(row.number),
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
    fn options_change_the_row_and_wrong_ones_are_refused() {
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
        for wrong in [
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
