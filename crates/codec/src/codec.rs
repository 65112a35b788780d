//! The trait that every codec implements, and its types.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// What a codec says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecDescription {
    /// Number in archives.
    pub id: CodecId,
    /// Name in options and listings.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Levels, from fast to dense.
    pub levels: RangeInclusive<i32>,
    /// Level when none is given.
    pub default_level: i32,
}

/// What a codec wants done with a block whose sample looks like noise. The block may still hold
/// repeats that lie between the pieces of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnIncompressible {
    /// Store it: the codec's window is too small for such repeats.
    Store,
    /// Run the codec: it skips noise as fast as any check could.
    Run,
    /// Store it if a quick full pass finds nothing either: the codec is slow on noise.
    Confirm,
}

/// One way to squeeze a block. Pure: the output depends on the arguments only, never on what the
/// workspace was used for before.
///
/// `raw` is 1 to `MAX_RAW_LENGTH_BYTES` bytes (the caller has checked). Memory estimates are in
/// bytes, upper bounds, and leave out the raw and the compressed bytes themselves.
pub trait Codec: Sync {
    /// Name, number, levels.
    fn describe(&self) -> CodecDescription;

    /// Appends the compressed form of `raw` to `out` and returns the bytes a decoder needs beside it.
    ///
    /// # Errors
    /// `Setting` for values out of range, `OutOfMemory`, `Encoder`. What was appended to `out` by
    /// then is undefined; the caller cuts it off.
    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params>;

    /// Opens `data` into `out`, whose length is the stated raw length. Both must be used up exactly.
    ///
    /// # Errors
    /// `Damaged` or `Length`; `out` then holds anything.
    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()>;

    /// Opens only the first `out.len()` of `raw_length_bytes` raw bytes, and does no work for the
    /// rest beyond the codec's own granularity. Damage behind the prefix may go unnoticed.
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

    /// Checks untrusted parameters against the stated raw length, before any memory is taken.
    ///
    /// # Errors
    /// `Description`.
    fn check_params(&self, params: &Params, raw_length_bytes: u64) -> Result<()> {
        let _ = raw_length_bytes;
        params.to_array().map(|[]: [u8; 0]| ())
    }

    /// Working memory of `encode`, bytes.
    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64;

    /// Working memory of `decode` and `decode_prefix`, bytes, for parameters that were checked.
    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64;

    /// The next settings that need less memory to encode and still make sense, if any.
    fn with_less_memory(&self, raw_length_bytes: u64, settings: &Settings) -> Option<Settings> {
        let _ = (raw_length_bytes, settings);
        None
    }

    /// Whether opening a block takes so long that a cache should rather keep it in another form.
    fn is_slow_to_decode(&self) -> bool {
        false
    }

    /// What to do with a block whose sample looks like noise.
    fn on_incompressible(&self, settings: &Settings) -> OnIncompressible;
}

/// The level that `settings` asks for, checked against the codec's range.
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

/// The level clamped into the codec's range, for estimates that cannot fail.
pub(crate) fn clamped_level(codec: &dyn Codec, settings: &Settings) -> i32 {
    let description = codec.describe();
    settings
        .level
        .unwrap_or(description.default_level)
        .clamp(*description.levels.start(), *description.levels.end())
}

/// `Setting` unless `value` lies in `allowed`.
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

/// Reserves room for `additional_bytes` more in `out`, or says that there is none.
pub(crate) fn reserve(codec: CodecId, out: &mut Vec<u8>, additional_bytes: usize) -> Result<()> {
    out.try_reserve_exact(additional_bytes)
        .map_err(|_| Error::OutOfMemory {
            codec,
            wanted_bytes: additional_bytes as u64,
        })
}
