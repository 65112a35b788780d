//! Encoders of blocks that other programs read: a whole block in memory, coded as [`LrzipCodec`] says.

use bzip2::{Action as BzAction, Compress as Bzip};
use libdeflater::{CompressionLvl, Compressor};
use liblzma::stream::{Action, Filters, LzmaOptions, PRESET_EXTREME, Status as LzmaStatus, Stream};

use crate::codec::LrzipCodec;
use crate::{lzo, zpaq};
use refrain_codec::CodecId;
use refrain_codec::{Error, Result};

/// `(pb * 5 + lp) * 9 + lc` of pb 2, lp 0, lc 3, which is what everybody writes.
pub const LZMA_PROPERTIES: u8 = 0x5D;

/// Levels of all of them.
pub const LRZIP_LEVELS: std::ops::RangeInclusive<u8> = 1..=9;

/// How a block is to be coded for another program. Levels are 1 to 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LrzipPlan {
    /// The bytes as they are.
    Stored,
    /// bzip2 with blocks of so many times 100,000 bytes.
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
        /// Bytes of the dictionary, at least 4096.
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
    /// What a decoder has to know.
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

    /// Working memory of an encoder in bytes, without the block and what it becomes.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        match self {
            Self::Stored => 0,
            Self::Bzip2 { .. } => 8 << 20,
            // Its densest levels keep a list of matches for a block of their own.
            Self::Zlib { .. } => 12 << 20,
            // Window 1.5, hash table up to 2, binary trees 8 times the dictionary, and fixed tables.
            Self::Lzma {
                dictionary_bytes, ..
            } => u64::from(dictionary_bytes) * 23 / 2 + (6 << 20),
            Self::Lzo => lzo::encode::MEMORY_BYTES,
            Self::Zpaq { level } => zpaq::encoder::memory_bytes(level),
        }
    }
}

/// Codes a block and appends it to `out`.
///
/// # Errors
/// `OutOfMemory`; `Encoder` when a library fails.
pub fn encode_lrzip_block(plan: LrzipPlan, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match plan {
        LrzipPlan::Stored => out.extend_from_slice(raw),
        LrzipPlan::Bzip2 { level } => bzip2(level, raw, out)?,
        LrzipPlan::Zlib { level } => zlib(level, raw, out)?,
        LrzipPlan::Lzma {
            level,
            dictionary_bytes,
        } => lzma(level, dictionary_bytes, raw, out)?,
        LrzipPlan::Lzo => lzo::encode::encode(raw, out),
        LrzipPlan::Zpaq { level } => zpaq::encoder::encode(level, raw, out)?,
    }
    Ok(())
}

fn failed(codec: CodecId, cause: &'static str) -> Error {
    Error::Encoder { codec, cause }
}

/// The smallest dictionary that liblzma takes, in bytes.
const DICTIONARY_BYTES_MIN: u64 = 4096;

/// Room for what a step makes at least; vectors grow by more.
const STEP_BYTES: usize = 64 << 10;

/// Calls `step` with the raw bytes that are left until it says that the stream has ended.
fn run(
    raw: &[u8],
    out: &mut Vec<u8>,
    mut step: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(u64, bool)>,
) -> Result<()> {
    let mut taken = 0;
    loop {
        out.reserve(STEP_BYTES);
        let (taken_in_all, has_ended) = step(raw.get(taken..).unwrap_or(&[]), out)?;
        if has_ended {
            return Ok(());
        }
        taken = usize::try_from(taken_in_all).unwrap_or(raw.len());
    }
}

fn bzip2(level: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |_| failed(CodecId::BZIP2, "libbz2 failed");
    let level = bzip2::Compression::new(u32::from(level));
    let mut stream = Bzip::new(level, 0);
    run(raw, out, |input, out| {
        let status = stream
            .compress_vec(input, out, BzAction::Finish)
            .map_err(failed)?;
        Ok((stream.total_in(), status == bzip2::Status::StreamEnd))
    })
}

/// libdeflate's levels for 1 to 9. On literals of kernel trees its 7 makes 0.4 % less than zlib's 7, and 8 and 9 another 0.5 % (60, 39 and
/// 32 MB/s); writing two kernel trees took 27.8 s of processor time, with zlib-rs 31.6.
const LIBDEFLATE_LEVELS: [i32; 9] = [1, 3, 4, 5, 6, 6, 7, 9, 12];

fn zlib(level: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |cause| failed(CodecId::DEFLATE, cause);
    let index = usize::from(level.clamp(1, 9)) - 1;
    let level = CompressionLvl::new(LIBDEFLATE_LEVELS[index])
        .map_err(|_| failed("libdeflate does not know the level"))?;
    let mut compressor = Compressor::new(level);
    let start = out.len();
    out.resize(start + compressor.zlib_compress_bound(raw.len()), 0);
    let count = compressor
        .zlib_compress(raw, &mut out[start..])
        .map_err(|_| failed("libdeflate failed"))?;
    out.truncate(start + count);
    Ok(())
}

/// liblzma's presets 1 to 6; 7 is 6 again (the dictionary tells them apart), 8 searches longer matches, 9 is its "extreme" parse.
///
/// 24 MB of literals of kernel trees: preset 4 2.74 MB in 4.8 s, 5 2.53 in 7.2, 6 2.34 in 11.0, 6 with matches of 128 2.33 in 12.5.
fn lzma(level: u8, dictionary_bytes: u32, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |cause| failed(CodecId::LZMA, cause);
    let preset = match level {
        9 => 6 | PRESET_EXTREME,
        _ => u32::from(level.min(6)),
    };
    let mut options =
        LzmaOptions::new_preset(preset).map_err(|_| failed("liblzma does not know the preset"))?;
    if level == 8 {
        options.nice_len(128);
    }
    // A larger dictionary than the block would only take memory.
    let needed = (raw.len() as u64)
        .next_power_of_two()
        .max(DICTIONARY_BYTES_MIN);
    options.dict_size(
        u32::try_from(needed).map_or(dictionary_bytes, |needed| needed.min(dictionary_bytes)),
    );
    let mut filters = Filters::new();
    filters.lzma1(&options);
    let mut stream = Stream::new_raw_encoder(&filters).map_err(|_| Error::OutOfMemory {
        codec: CodecId::LZMA,
        wanted_bytes: u64::from(dictionary_bytes) * 23 / 2,
    })?;
    run(raw, out, |input, out| {
        let status = stream
            .process_vec(input, out, Action::Finish)
            .map_err(|_| failed("liblzma failed"))?;
        Ok((stream.total_in(), matches!(status, LzmaStatus::StreamEnd)))
    })
}
