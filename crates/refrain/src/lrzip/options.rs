//! What a caller can choose of an archive of lrzip, and what a run makes of it.

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

/// What squeezes the blocks of an archive of lrzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LrzipBackEnd {
    /// Nothing: far repeats are taken out, that is all.
    None,
    /// bzip2.
    Bzip2,
    /// zlib, which lrzip calls gzip.
    Gzip,
    /// LZO1X. Levels make no difference.
    Lzo,
    /// LZMA.
    #[default]
    Lzma,
    /// ZPAQ: slow to make and as slow to open.
    Zpaq,
}

impl LrzipBackEnd {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Bzip2,
        Self::Gzip,
        Self::Lzo,
        Self::Lzma,
        Self::Zpaq,
    ];

    /// As lrzip calls it.
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

/// How an archive of lrzip is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LrzipCipher {
    /// AES-128-CBC, that of lrzip 0.6. Nothing notices when encrypted bytes are changed, and a password is tried in
    /// about a second of one core: only a long random one is safe.
    #[default]
    Aes128Cbc,
    /// AES-256-GCM with a key by PBKDF2, which lrzip reads from 0.7 on. Needs one chunk.
    Aes256Gcm,
}

/// Encryption of an archive of lrzip.
#[derive(Debug, Clone)]
pub struct LrzipEncryption {
    /// How.
    pub cipher: LrzipCipher,
    /// Asked once, when the run begins; 1 to 503 bytes.
    pub password: PasswordSource,
}

/// How to make an archive of lrzip. `threads` changes nothing but the time; everything else may change the archive's bytes.
#[derive(Debug, Clone)]
pub struct LrzipOptions {
    /// What squeezes the blocks.
    pub back_end: LrzipBackEnd,
    /// 1 is the fastest, 9 the densest; the back end's own level.
    pub level: Level,
    /// Content of a chunk, at most, in bytes: matches do not reach beyond it. It is rounded to multiples of 16 MiB, at least one.
    /// `None`: one chunk holds everything.
    pub chunk_bytes: Option<u64>,
    /// Whether a sample of each block is looked at first, and blocks that look like noise are stored.
    pub tries_sample: bool,
    /// Encryption, if any: then the bytes also depend on what is drawn.
    pub encryption: Option<LrzipEncryption>,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Memory that may be used, in bytes; `None`: a fixed default by back end and level.
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

/// What a run works with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LrzipTuning {
    pub tuning: Tuning,
    pub cut: CutPlan,
    /// Memory for blocks that are encoded and wait for the place of the next one, and for the lists that records are made from, at most.
    pub kept_bytes: u64,
}

/// A group of blocks may take this share of the memory, and two groups may wait.
const GROUP_SHARE: u64 = 16;

/// The list of where store bytes came first may take this share of the memory: what it has no room for is not matched any more. Two kernel
/// trees with zlib need 45 MB, with LZMA 9.
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
        let cipher = options.encryption.as_ref().map(|with| with.cipher);
        if cipher == Some(LrzipCipher::Aes256Gcm) && options.chunk_bytes.is_some() {
            let message = "lrzip's AES-256-GCM is written in archives of one chunk: no window";
            return Err(usage(message.to_owned()));
        }
        let memory_bytes = options
            .memory_bytes
            .unwrap_or(default_memory_bytes(options));
        if memory_bytes < MEMORY_BYTES_MIN {
            return Err(Error::limit(format!(
                "a memory budget of {} is too small: at least {} are needed",
                mebibytes(memory_bytes),
                mebibytes(MEMORY_BYTES_MIN)
            )));
        }
        let block_bytes =
            block_bytes(options.back_end, level).min(prev_power_of_two(memory_bytes / 32));
        let plan = plan(options.back_end, level, block_bytes);
        let group_bytes = memory_bytes / GROUP_SHARE;
        let records_bytes = memory_bytes / RECORDS_SHARE;
        let chunk_bytes = options
            .chunk_bytes
            .map(|bytes| (bytes / EPOCH_BYTES * EPOCH_BYTES).max(EPOCH_BYTES));
        let rules = Rules {
            anchor_bits: anchor_bits(options.back_end, level),
            far_min: far_bytes_min(plan, memory_bytes),
            near_min: near_bytes_min(plan),
            near_window: sight_bytes(plan).min(block_bytes),
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
            kept_bytes: 2 * group_bytes.max(block_bytes) + records_bytes + records_bytes / 2,
        })
    }
}

fn default_memory_bytes(options: &LrzipOptions) -> u64 {
    match (options.back_end, options.level.0) {
        // Two blocks at a time, with their encoders.
        (LrzipBackEnd::Lzma | LrzipBackEnd::Zpaq, 8..) => 4 << 30,
        (LrzipBackEnd::Lzma | LrzipBackEnd::Zpaq, _) => 2 << 30,
        _ => 1 << 30,
    }
}

/// Store bytes in one block, at most: what the back end sees at once.
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

/// Shortest far repeat that becomes a match, in bytes. A match and the literals before it take ten bytes of records, one when squeezed, and
/// cut the context of the back end.
///
/// Two kernel trees, MB: zlib 96 bytes 199.2, 104 198.4, 112 198.1, 120 200.3, 128 199.9, 192 199.9 (lrzip 198.4); LZO 96 317.6,
/// 112 317.4; bzip2 112 158.5, 192 157.9; none 64 1038, 112 1049. Twice the anchors: zlib 96 200.2.
///
/// Many short matches make long lists, which little memory has no room for ([`RECORDS_SHARE`]).
fn far_bytes_min(plan: LrzipPlan, memory_bytes: u64) -> u32 {
    match plan {
        _ if memory_bytes < 512 * MIB => 192,
        LrzipPlan::Stored => 64,
        LrzipPlan::Zlib { .. } | LrzipPlan::Lzo => 112,
        LrzipPlan::Bzip2 { .. } | LrzipPlan::Lzma { .. } | LrzipPlan::Zpaq { .. } => 192,
    }
}

/// The same where the back end sees the source itself. zlib says at most 258 bytes at a time.
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

/// How far back a back end finds repeats by itself, in bytes.
fn sight_bytes(plan: LrzipPlan) -> u64 {
    match plan {
        LrzipPlan::Stored => 0,
        LrzipPlan::Lzo => 48 * KIB,
        LrzipPlan::Zlib { .. } => 32 * KIB,
        LrzipPlan::Bzip2 { level } => u64::from(level) * 100_000,
        LrzipPlan::Lzma { .. } | LrzipPlan::Zpaq { .. } => u64::MAX,
    }
}
