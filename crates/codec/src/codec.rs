//! The trait that every codec implements, and its types.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// The properties of a codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecDescription {
    /// The number in archives.
    pub id: CodecId,
    /// The name in options and listings.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// The levels, from fast to dense.
    pub levels: RangeInclusive<i32>,
    /// The level when none is given.
    pub default_level: i32,
}

/// What to do with a block whose sample is incompressible. The block may still contain repeats
/// between the pieces of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnIncompressible {
    /// Store the block: the window of the codec is too small for such repeats.
    Store,
    /// Run the codec: it skips incompressible data as fast as any check could.
    Run,
    /// Store the block if a quick full pass does not find anything either: the codec is slow on
    /// incompressible data.
    Confirm,
}

/// One way to encode a block. Implementations are pure: the output depends only on the arguments,
/// not on earlier use of the workspace.
///
/// `raw` has 1 to `MAX_RAW_LENGTH_BYTES` bytes; the caller has checked that. Memory estimates are
/// upper bounds in bytes, without the raw and the compressed bytes.
pub trait Codec: Sync {
    /// The name, number and levels.
    fn describe(&self) -> CodecDescription;

    /// Appends the compressed form of `raw` to `out` and returns the parameters that a decoder
    /// needs beside it.
    ///
    /// # Errors
    /// `Setting` for values out of range, `OutOfMemory`, `Encoder`. Bytes already appended to `out`
    /// are then undefined; the caller truncates them.
    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params>;

    /// Decodes `data` into `out`, whose length is the stated raw length. `data` must end exactly
    /// where `out` is full.
    ///
    /// # Errors
    /// `Damaged` or `Length`; the content of `out` is then undefined.
    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()>;

    /// Decodes only the first `out.len()` of `raw_length_bytes` raw bytes. Does no more work than
    /// the codec's granularity requires. May miss damage after the prefix.
    ///
    /// # Errors
    /// As `decode`.
    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()>;

    /// Decodes as much of damaged data as possible into the front of `out`, whose length is the
    /// stated raw length. Wrong and missing bytes are undefined.
    fn decode_damaged(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) {
        // Decoders write the bytes before the damage in order.
        let _ = self.decode(workspace, params, data, out);
    }

    /// Checks untrusted parameters against the stated raw length, before any memory is allocated.
    ///
    /// # Errors
    /// `Description`, `Limit`.
    fn check_params(&self, params: &Params, raw_length_bytes: u64) -> Result<()> {
        let _ = raw_length_bytes;
        params.to_array().map(|[]: [u8; 0]| ())
    }

    /// The working memory of `encode`, bytes.
    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64;

    /// The working memory of `decode` and `decode_prefix`, bytes, for checked parameters.
    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64;

    /// The next settings that need less memory to encode and are still useful, if any.
    fn with_less_memory(&self, raw_length_bytes: u64, settings: &Settings) -> Option<Settings> {
        let _ = (raw_length_bytes, settings);
        None
    }

    /// Whether decoding is slow enough (tens of MB/s or less) that caches should retain a
    /// compressed copy of the block.
    fn is_slow_to_decode(&self) -> bool {
        false
    }

    /// What to do with a block whose sample is incompressible.
    fn on_incompressible(&self, settings: &Settings) -> OnIncompressible;
}

/// The level in `settings`, or the default level; an error unless it is in the range of the codec.
///
/// # Errors
/// `Setting`.
pub(crate) fn checked_level(codec: &dyn Codec, settings: &Settings) -> Result<i32> {
    let description = codec.describe();
    let level = settings.level.unwrap_or(description.default_level);
    check_setting(
        description.id,
        "level",
        i64::from(level),
        i64::from(*description.levels.start())..=i64::from(*description.levels.end()),
    )?;
    Ok(level)
}

/// The level clamped to the range of the codec, for estimates that cannot fail.
pub(crate) fn clamped_level(codec: &dyn Codec, settings: &Settings) -> i32 {
    let description = codec.describe();
    settings
        .level
        .unwrap_or(description.default_level)
        .clamp(*description.levels.start(), *description.levels.end())
}

pub(crate) fn check_setting(
    codec: CodecId,
    name: &'static str,
    value: i64,
    allowed: RangeInclusive<i64>,
) -> Result<()> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(Error::Setting {
        codec,
        name,
        value,
        minimum: *allowed.start(),
        maximum: *allowed.end(),
    })
}

/// Reserves capacity for `additional_bytes` more in `out`, or returns `OutOfMemory`.
pub(crate) fn reserve(codec: CodecId, out: &mut Vec<u8>, additional_bytes: usize) -> Result<()> {
    out.try_reserve_exact(additional_bytes)
        .map_err(|_| Error::OutOfMemory {
            codec,
            wanted_bytes: additional_bytes as u64,
        })
}
