//! Options for lrzip archives, and the tuning derived from them.

use std::str::FromStr;

use refrain_codec::{BlockPlan, CodecId};
use refrain_longmatch::Rules;
use refrain_lrzip_codec::LrzipPlan;

use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::options::{Level, PasswordSource};
use crate::tuning::{MEMORY_BYTES_MIN, Tuning, prev_power_of_two, resume_spacing};
use crate::write::lrzip::assemble::CutPlan;
use crate::write::pipeline::segments::EPOCH_BYTES;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The back end that compresses an lrzip archive's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LrzipBackEnd {
    /// No compression of blocks; far repeats are still removed.
    None,
    /// bzip2.
    Bzip2,
    /// zlib, which lrzip calls gzip.
    Gzip,
    /// LZO1X. It has no levels.
    Lzo,
    /// LZMA.
    #[default]
    Lzma,
    /// ZPAQ: slow to compress and equally slow to decompress.
    Zpaq,
}

impl LrzipBackEnd {
    /// All back ends.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Bzip2,
        Self::Gzip,
        Self::Lzo,
        Self::Lzma,
        Self::Zpaq,
    ];

    /// lrzip's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bzip2 => "bzip2",
            Self::Gzip => "gzip",
            Self::Lzo => "lzo",
            Self::Lzma => "lzma",
            Self::Zpaq => "zpaq",
        }
    }
}

impl FromStr for LrzipBackEnd {
    type Err = Error;

    fn from_str(text: &str) -> Result<LrzipBackEnd> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            let message = format!("lrzip has no back end '{text}'; it has {names}");
            Error::new(ErrorKind::Usage, message)
        })
    }
}

/// The cipher of an encrypted lrzip archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LrzipCipher {
    /// AES-128-CBC, as in lrzip 0.6. Changes of encrypted bytes are not detected, and trying a
    /// password takes about a second on one core: only a long random password is safe.
    #[default]
    Aes128Cbc,
    /// AES-256-GCM with a key from PBKDF2, which lrzip supports since 0.7.1.
    Aes256Gcm,
}

/// Encryption of an lrzip archive.
#[derive(Debug, Clone)]
pub struct LrzipEncryption {
    /// The cipher.
    pub cipher: LrzipCipher,
    /// The source of the password, of 1 to 503 bytes. It is called once, when the run starts.
    pub password: PasswordSource,
    /// When the archive is written, in seconds since 1970. With AES-128-CBC, the number of rounds
    /// of the key derivation grows with it, as lrzip's does: 11 million in 2026, 1.835 times as
    /// many every four years, at most 2^28. A time before November 2026 counts as that.
    pub written_unix_seconds: u64,
}

/// How to write an lrzip archive. `threads` changes only the time; every other option may change
/// the archive's bytes.
#[derive(Debug, Clone)]
pub struct LrzipOptions {
    /// The back end that compresses the blocks.
    pub back_end: LrzipBackEnd,
    /// 1 is the fastest, 9 the densest; the back end's own level.
    pub level: Level,
    /// The maximum content bytes of a chunk, which matches do not cross. Rounded down to a multiple
    /// of 16 MiB, at least one. `None`: one chunk holds everything.
    pub chunk_bytes: Option<u64>,
    /// Whether to analyze a sample of each block, and store blocks that look incompressible.
    pub tries_sample: bool,
    /// Encryption, if any. The bytes then also depend on random numbers.
    pub encryption: Option<LrzipEncryption>,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// The memory budget in bytes; `None`: a fixed default by back end and level.
    pub memory_bytes: Option<u64>,
}

impl Default for LrzipOptions {
    fn default() -> Self {
        LrzipOptions {
            back_end: LrzipBackEnd::default(),
            level: Level(7),
            chunk_bytes: None,
            tries_sample: true,
            encryption: None,
            threads: 1,
            memory_bytes: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LrzipTuning {
    pub tuning: Tuning,
    pub cut: CutPlan,
    /// The maximum memory for encoded blocks that wait for the offset of the next one, and for the
    /// lists that records are made from.
    pub waiting_bytes: u64,
    /// The plan that was asked for, if the memory budget has no room for it.
    pub lowered_from: Option<LrzipPlan>,
}

/// A group of blocks may take 1/16 of the memory budget, and two groups may wait.
const GROUP_SHARE: u64 = 16;

/// The list of first occurrences may take 1/8 of the memory budget; what does not fit is no longer
/// matched. Two kernel trees need 45 MB with zlib, 9 with LZMA.
const RECORDS_SHARE: u64 = 8;

impl LrzipTuning {
    pub(crate) fn new(options: &LrzipOptions) -> Result<LrzipTuning> {
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        let level = options.level.0;
        if !refrain_lrzip_codec::LRZIP_LEVELS.contains(&level) {
            return Err(usage(format!(
                "there is no level {level}; levels are 1 to 9"
            )));
        }
        let memory_bytes = options
            .memory_bytes
            .unwrap_or(options.default_memory_bytes());
        if memory_bytes < MEMORY_BYTES_MIN {
            return Err(Error::limit(format!(
                "a memory budget of {} is too small: at least {} are needed",
                mebibytes(memory_bytes),
                mebibytes(MEMORY_BYTES_MIN)
            )));
        }
        let block_bytes =
            block_bytes(options.back_end, level).min(prev_power_of_two(memory_bytes / 32));
        let asked = plan(options.back_end, level, block_bytes);
        let plan = fitting_plan(asked, memory_bytes);
        let group_bytes = memory_bytes / GROUP_SHARE;
        let records_bytes = memory_bytes / RECORDS_SHARE;
        let chunk_bytes = options
            .chunk_bytes
            .map(|bytes| (bytes / EPOCH_BYTES * EPOCH_BYTES).max(EPOCH_BYTES));
        let rules = Rules {
            anchor_bits: anchor_bits(options.back_end, level),
            far_min: far_bytes_min(plan, memory_bytes),
            near_min: near_bytes_min(plan),
            near_window: window_bytes(plan).min(block_bytes),
            block_bytes,
            run_min: 1024,
            resume_spacing: resume_spacing(memory_bytes),
        };
        Ok(LrzipTuning {
            tuning: Tuning {
                level,
                rules,
                plan: BlockPlan::plain(CodecId::NONE, 0),
                near_one_in: None,
                // Extents that repeat repeats would become many short records.
                continuations_bytes: 0,
                memory_bytes,
            },
            cut: CutPlan {
                plan,
                block_bytes,
                blocks_per_group: (group_bytes / block_bytes).max(1) as usize,
                chunk_bytes,
                records_memory_bytes: records_bytes as usize,
                tries_sample: options.tries_sample,
            },
            lowered_from: (plan != asked).then_some(asked),
            waiting_bytes: 2 * group_bytes.max(block_bytes) + records_bytes + records_bytes / 2,
        })
    }
}

impl LrzipOptions {
    /// The memory budget if [`memory_bytes`](LrzipOptions::memory_bytes) is `None`, in bytes.
    pub fn default_memory_bytes(&self) -> u64 {
        match (self.back_end, self.level.0) {
            // Two blocks at once, with their encoders.
            (LrzipBackEnd::Lzma | LrzipBackEnd::Zpaq, 8..) => 4 << 30,
            (LrzipBackEnd::Lzma | LrzipBackEnd::Zpaq, _) => 2 << 30,
            _ => 1 << 30,
        }
    }
}

/// The maximum store bytes in one block, which the back end compresses at once.
fn block_bytes(back_end: LrzipBackEnd, level: u8) -> u64 {
    match back_end {
        LrzipBackEnd::Lzma => match level {
            ..=3 => 8 * MIB,
            4..=7 => 16 * MIB,
            _ => 32 * MIB,
        },
        LrzipBackEnd::Zpaq => 16 * MIB,
        _ => 8 * MIB,
    }
}

fn plan(back_end: LrzipBackEnd, level: u8, block_bytes: u64) -> LrzipPlan {
    match back_end {
        LrzipBackEnd::None => LrzipPlan::Stored,
        LrzipBackEnd::Bzip2 => LrzipPlan::Bzip2 { level },
        LrzipBackEnd::Gzip => LrzipPlan::Zlib { level },
        LrzipBackEnd::Lzo => LrzipPlan::Lzo,
        LrzipBackEnd::Lzma => LrzipPlan::Lzma {
            level,
            dictionary_bytes: u32::try_from(block_bytes).unwrap_or(1 << 30),
        },
        LrzipBackEnd::Zpaq => LrzipPlan::Zpaq { level },
    }
}

/// The plan, or the next one with less memory that leaves half of the budget to everything else:
/// the tables of ZPAQ take 204 MB at level 9 for the smallest block.
fn fitting_plan(asked: LrzipPlan, memory_bytes: u64) -> LrzipPlan {
    let mut plan = asked;
    while plan.memory_bytes() > memory_bytes / 2
        && let Some(lighter) = plan.with_less_memory()
    {
        plan = lighter;
    }
    plan
}

/// The shortest far repeat that becomes a match, in bytes. A match and the literals before it take
/// ten bytes of records, one byte after compression, and interrupt the context of the back end.
///
/// Two kernel trees, MB: zlib 96 bytes 199.2, 104 198.4, 112 198.1, 120 200.3, 128 199.9, 192 199.9
/// (lrzip 198.4); LZO 96 317.6, 112 317.4; bzip2 112 158.5, 192 157.9; none 64 1038, 112 1049.
/// Twice the anchors: zlib 96 200.2.
///
/// Many short matches make long lists, for which a small memory has no room ([`RECORDS_SHARE`]).
fn far_bytes_min(plan: LrzipPlan, memory_bytes: u64) -> u32 {
    match plan {
        _ if memory_bytes < 512 * MIB => 192,
        LrzipPlan::Stored => 64,
        LrzipPlan::Zlib { .. } | LrzipPlan::Lzo => 112,
        LrzipPlan::Bzip2 { .. } | LrzipPlan::Lzma { .. } | LrzipPlan::Zpaq { .. } => 192,
    }
}

/// The shortest repeat within the back end's window that becomes a match, in bytes. zlib encodes at
/// most 258 bytes at a time.
fn near_bytes_min(plan: LrzipPlan) -> u32 {
    match plan {
        LrzipPlan::Stored | LrzipPlan::Zlib { .. } | LrzipPlan::Lzo => 1024,
        LrzipPlan::Bzip2 { .. } | LrzipPlan::Lzma { .. } | LrzipPlan::Zpaq { .. } => 4096,
    }
}

/// One position in `2^anchor_bits` is an anchor.
fn anchor_bits(back_end: LrzipBackEnd, level: u8) -> u32 {
    match (back_end, level) {
        (LrzipBackEnd::Lzo, _) | (_, ..=3) => 7,
        _ => 6,
    }
}

/// How far back a back end itself finds repeats, in bytes.
fn window_bytes(plan: LrzipPlan) -> u64 {
    match plan {
        LrzipPlan::Stored => 0,
        LrzipPlan::Lzo => 48 * KIB,
        LrzipPlan::Zlib { .. } => 32 * KIB,
        LrzipPlan::Bzip2 { level } => u64::from(level) * 100_000,
        LrzipPlan::Lzma { .. } | LrzipPlan::Zpaq { .. } => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoders_leave_half_of_the_budget() {
        for back_end in LrzipBackEnd::ALL {
            for level in 1..=9 {
                for memory_mib in [128, 200, 256, 400, 512] {
                    let options = LrzipOptions {
                        back_end,
                        level: Level(level),
                        memory_bytes: Some(memory_mib * MIB),
                        ..LrzipOptions::default()
                    };
                    let tuning = LrzipTuning::new(&options).unwrap();
                    let encoder_bytes = tuning.cut.plan.memory_bytes();
                    assert!(encoder_bytes <= memory_mib * MIB / 2, "{options:?}");
                    // Only ZPAQ's memory does not follow the block, which follows the budget.
                    let is_zpaq = back_end == LrzipBackEnd::Zpaq;
                    assert!(tuning.lowered_from.is_none() || is_zpaq, "{options:?}");
                }
                let options = LrzipOptions {
                    back_end,
                    level: Level(level),
                    ..LrzipOptions::default()
                };
                assert_eq!(LrzipTuning::new(&options).unwrap().lowered_from, None);
            }
        }
    }
}
