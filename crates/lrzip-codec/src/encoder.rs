//! Encoders of blocks that are in memory.

use bzip2::{Action as Bzip2Action, Compress as Bzip2Compress};
use libdeflater::{CompressionLvl, Compressor};
use liblzma::stream::{Action, Filters, LzmaOptions, PRESET_EXTREME, Status as LzmaStatus, Stream};

use crate::codec::LrzipCodec;
use crate::{lzo, zpaq};
use refrain_codec::{CodecId, Error, Result, create_with_memory};

/// `(pb * 5 + lp) * 9 + lc` for pb 2, lp 0 and lc 3, the values that lrzip writes.
pub const LZMA_PROPERTIES: u8 = 0x5D;

/// The levels of all encoders.
pub const LRZIP_LEVELS: std::ops::RangeInclusive<u8> = 1..=9;

/// How to encode a block. Levels are 1 to 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LrzipPlan {
    /// Store the raw bytes.
    Stored,
    /// bzip2 with blocks of `level` times 100,000 bytes.
    Bzip2 {
        /// 1 to 9.
        level: u8,
    },
    /// zlib.
    Zlib {
        /// 1 to 9.
        level: u8,
    },
    /// LZMA.
    Lzma {
        /// 1 to 9.
        level: u8,
        /// The size of the dictionary in bytes, at least 4096.
        dictionary_bytes: u32,
    },
    /// LZO1X.
    Lzo,
    /// ZPAQ.
    Zpaq {
        /// 1 to 9.
        level: u8,
    },
}

impl LrzipPlan {
    /// Returns the encoding as a decoder needs it.
    #[must_use]
    pub fn codec(self) -> LrzipCodec {
        match self {
            Self::Stored => LrzipCodec::Stored,
            Self::Bzip2 { .. } => LrzipCodec::Bzip2,
            Self::Zlib { .. } => LrzipCodec::Zlib,
            Self::Lzma {
                dictionary_bytes, ..
            } => LrzipCodec::Lzma {
                properties: LZMA_PROPERTIES,
                dictionary_bytes,
                filter: None,
            },
            Self::Lzo => LrzipCodec::Lzo,
            Self::Zpaq { .. } => LrzipCodec::Zpaq,
        }
    }

    /// Returns the plan that needs the next smaller memory: a lower level, then bzip2 (for LZMA and
    /// ZPAQ, whose lowest levels need more), then storing. `None` for storing.
    ///
    /// This is what lrzip does if the system refuses it memory.
    #[must_use]
    pub fn with_less_memory(self) -> Option<LrzipPlan> {
        match self {
            Self::Stored => None,
            Self::Lzma {
                level: level @ 2..,
                dictionary_bytes,
            } => Some(Self::Lzma {
                level: level - 1,
                dictionary_bytes: (dictionary_bytes / 2).max(DICTIONARY_BYTES_LEAST),
            }),
            Self::Zpaq { level: level @ 2.. } => Some(Self::Zpaq { level: level - 1 }),
            Self::Lzma { .. } | Self::Zpaq { .. } => Some(Self::Bzip2 { level: BZIP2_LEVEL }),
            Self::Bzip2 { level: level @ 2.. } => Some(Self::Bzip2 { level: level - 1 }),
            Self::Zlib { level: level @ 2.. } => Some(Self::Zlib { level: level - 1 }),
            Self::Bzip2 { .. } | Self::Zlib { .. } | Self::Lzo => Some(Self::Stored),
        }
    }

    /// Returns the working memory of an encoder in bytes, without the raw and the encoded block.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        match self {
            Self::Stored => 0,
            Self::Bzip2 { level } => bzip2_bytes(level),
            // The densest levels keep a list of the matches of a deflate block.
            Self::Zlib { .. } => ZLIB_BYTES,
            // The window takes 1.5 times the dictionary, the hash table up to 2 times and the
            // binary trees 8 times; fixed tables are added.
            Self::Lzma {
                dictionary_bytes, ..
            } => u64::from(dictionary_bytes) * 23 / 2 + (6 << 20),
            Self::Lzo => lzo::encode::MEMORY_BYTES,
            Self::Zpaq { level } => zpaq::encoder::memory_bytes(level),
        }
    }
}

/// The memory of an encoder of bzip2: eight bytes for each of a block of bzip2, and tables.
fn bzip2_bytes(level: u8) -> u64 {
    u64::from(level) * 800_000 + (512 << 10)
}

/// The memory of an encoder of zlib at the highest level.
const ZLIB_BYTES: u64 = 12 << 20;

/// The smallest dictionary that is worth an encoder of LZMA, in bytes: lrzip's at its level 1.
const DICTIONARY_BYTES_LEAST: u32 = 64 << 10;

/// The level of bzip2 where LZMA and ZPAQ have too little memory: half of its memory and nearly its
/// density.
const BZIP2_LEVEL: u8 = 5;

/// Reserves `bytes` more in `out`, so that an encoder that appends at most as many allocates
/// nothing.
fn reserve(codec: CodecId, out: &mut Vec<u8>, bytes: usize) -> Result<()> {
    let refused = |_| Error::OutOfMemory {
        codec,
        wanted_bytes: bytes as u64,
    };
    out.try_reserve_exact(bytes).map_err(refused)
}

/// Encodes a block and appends the result to `out`.
///
/// # Errors
/// `OutOfMemory`; `Encoder` if a library fails.
pub fn encode_lrzip_block(plan: LrzipPlan, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match plan {
        LrzipPlan::Stored => {
            reserve(CodecId::NONE, out, raw.len())?;
            out.extend_from_slice(raw);
        }
        LrzipPlan::Bzip2 { level } => bzip2(level, raw, out)?,
        LrzipPlan::Zlib { level } => zlib(level, raw, out)?,
        LrzipPlan::Lzma {
            level,
            dictionary_bytes,
        } => lzma(level, dictionary_bytes, raw, out)?,
        LrzipPlan::Lzo => {
            reserve(CodecId::LZO, out, lzo::encode::bound_bytes(raw.len()))?;
            lzo::encode::encode(raw, out);
        }
        LrzipPlan::Zpaq { level } => {
            // Incompressible bytes take a little more than eight bits each.
            reserve(CodecId::ZPAQ, out, raw.len() + raw.len() / 64 + (4 << 10))?;
            zpaq::encoder::encode(level, raw, out)?;
        }
    }
    Ok(())
}

fn failed(codec: CodecId, cause: &'static str) -> Error {
    Error::Encoder { codec, cause }
}

/// The smallest dictionary that liblzma accepts, in bytes.
const DICTIONARY_BYTES_MIN: u64 = 4096;

/// How much space there is at least before each step, in bytes.
const STEP_BYTES: usize = 64 << 10;

/// By how much the space for the encoded bytes grows at once, in bytes.
const GROWTH_BYTES: usize = 1 << 20;

/// Calls `step` with the remaining raw bytes until it reports the end of the stream. `step` returns
/// the total of raw bytes consumed, and whether the stream has ended.
fn run(
    codec: CodecId,
    raw: &[u8],
    out: &mut Vec<u8>,
    mut step: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(u64, bool)>,
) -> Result<()> {
    let mut consumed = 0;
    loop {
        if out.capacity() - out.len() < STEP_BYTES {
            // As `Vec` grows, but refused memory is an error.
            reserve(codec, out, out.len().max(GROWTH_BYTES))?;
        }
        let (consumed_total, has_ended) = step(raw.get(consumed..).unwrap_or(&[]), out)?;
        if has_ended {
            return Ok(());
        }
        consumed = usize::try_from(consumed_total).unwrap_or(raw.len());
    }
}

fn bzip2(level: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |_| failed(CodecId::BZIP2, "libbz2 failed");
    let create = || Bzip2Compress::new(bzip2::Compression::new(u32::from(level)), 0);
    let mut stream = create_with_memory(CodecId::BZIP2, bzip2_bytes(level), create)?;
    run(CodecId::BZIP2, raw, out, |input, out| {
        let status = stream
            .compress_vec(input, out, Bzip2Action::Finish)
            .map_err(failed)?;
        Ok((stream.total_in(), status == bzip2::Status::StreamEnd))
    })
}

/// The levels of libdeflate for levels 1 to 9.
///
/// Blocks are encoded by libdeflate, which takes whole blocks, and decoded by zlib-rs, which
/// decodes streams. 100 MB of kernel sources in blocks of 16 MiB, zlib-rs at the same level
/// relative to libdeflate (seconds of processor time, both alternately, twice):
///
/// | level | libdeflate | zlib-rs | time | size |
/// |---|---|---|---|---|
/// | 1 | 0.30 | 0.27 | 0.90 | +34 % |
/// | 3 | 0.43 | 0.47 | 1.10 | +3.7 % |
/// | 5 | 0.64 | 0.69 | 1.07 | +1.2 % |
/// | 6 | 0.63 | 0.86 | 1.35 | +0.6 % |
/// | 7 (default) | 0.87 | 1.28 | 1.46 | +0.4 % |
/// | 8 | 1.68 | 1.89 | 1.12 | +0.7 % |
/// | 9 | 19.5 | 1.78 | 0.09 | +4.4 % |
const LIBDEFLATE_LEVELS: [i32; 9] = [1, 3, 4, 5, 6, 6, 7, 9, 12];

fn zlib(level: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |cause| failed(CodecId::DEFLATE, cause);
    let index = usize::from(level.clamp(1, 9)) - 1;
    let level = CompressionLvl::new(LIBDEFLATE_LEVELS[index])
        .map_err(|_| failed("libdeflate does not accept the level"))?;
    let create = || Compressor::new(level);
    let mut compressor = create_with_memory(CodecId::DEFLATE, ZLIB_BYTES, create)?;
    let start = out.len();
    let bound_bytes = compressor.zlib_compress_bound(raw.len());
    reserve(CodecId::DEFLATE, out, bound_bytes)?;
    out.resize(start + bound_bytes, 0);
    let count = compressor
        .zlib_compress(raw, &mut out[start..])
        .map_err(|_| failed("libdeflate failed"))?;
    out.truncate(start + count);
    Ok(())
}

/// Encodes with liblzma. Levels 1 to 6 are its presets. Level 7 is preset 6 with a larger
/// dictionary, 8 searches longer matches, and 9 is preset 6 with the "extreme" flag.
///
/// Measured on 24 MB of literals of kernel trees: preset 4 yields 2.74 MB in 4.8 s, 5 2.53 MB in
/// 7.2 s, 6 2.34 MB in 11.0 s, and 6 with matches of 128 bytes 2.33 MB in 12.5 s.
fn lzma(level: u8, dictionary_bytes: u32, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |cause| failed(CodecId::LZMA, cause);
    let preset = match level {
        9 => 6 | PRESET_EXTREME,
        _ => u32::from(level.min(6)),
    };
    let mut options = LzmaOptions::new_preset(preset)
        .map_err(|_| failed("liblzma does not accept the preset"))?;
    if level == 8 {
        options.nice_len(128);
    }
    // A dictionary larger than the block would only use memory.
    let useful_bytes = (raw.len() as u64)
        .next_power_of_two()
        .max(DICTIONARY_BYTES_MIN);
    options.dict_size(
        u32::try_from(useful_bytes).map_or(dictionary_bytes, |useful| useful.min(dictionary_bytes)),
    );
    let mut filters = Filters::new();
    filters.lzma1(&options);
    let mut stream = Stream::new_raw_encoder(&filters).map_err(|_| Error::OutOfMemory {
        codec: CodecId::LZMA,
        wanted_bytes: u64::from(dictionary_bytes) * 23 / 2,
    })?;
    run(CodecId::LZMA, raw, out, |input, out| {
        let status = stream
            .process_vec(input, out, Action::Finish)
            .map_err(|_| failed("liblzma failed"))?;
        Ok((stream.total_in(), matches!(status, LzmaStatus::StreamEnd)))
    })
}
