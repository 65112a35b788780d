//! The trait that every codec implements, and the one table of codecs.

use std::ops::RangeInclusive;

use crate::bwt::Bwt;
use crate::bzip2::Bzip2;
use crate::cm::Cm;
use crate::deflate::Deflate;
use crate::description::Params;
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::lz4::Lz4;
use crate::lzma::Lzma;
use crate::none::Stored;
use crate::ppmd::Ppmd;
use crate::settings::Settings;
use crate::workspace::Workspace;
use crate::zstd::Zstd;

/// What a codec says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
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
pub enum OnNoise {
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
    fn describe(&self) -> Description;

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
    fn opens_slowly(&self) -> bool {
        false
    }

    /// What to do with a block whose sample looks like noise.
    fn on_noise(&self, settings: &Settings) -> OnNoise;
}

/// Every codec of this build. Name, number and implementation meet here and nowhere else.
static CODECS: [&dyn Codec; 9] = [
    &Stored, &Lz4, &Zstd, &Lzma, &Bzip2, &Deflate, &Ppmd, &Bwt, &Cm,
];

/// All codecs of this build, by rising id.
pub fn codecs() -> impl Iterator<Item = &'static dyn Codec> {
    CODECS.iter().copied()
}

/// The codec with this number.
///
/// # Errors
/// `UnsupportedCodec`.
pub fn by_id(id: CodecId) -> Result<&'static dyn Codec> {
    CODECS
        .get(usize::from(id.0))
        .copied()
        .ok_or(Error::UnsupportedCodec(id))
}

/// The codec with this name (as in `Description::name`).
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Codec> {
    codecs().find(|codec| codec.describe().name == name)
}

/// True when this build can read and write the codec.
#[must_use]
pub fn supported(id: CodecId) -> bool {
    by_id(id).is_ok()
}

/// Whether the codec opens blocks at tens of megabytes a second and less; false for codecs that this build lacks.
#[must_use]
pub fn opens_slowly(id: CodecId) -> bool {
    by_id(id).is_ok_and(Codec::opens_slowly)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_order_of_ids_and_names_are_unique() {
        let mut names = Vec::new();
        for (index, codec) in codecs().enumerate() {
            let description = codec.describe();
            assert_eq!(usize::from(description.id.0), index);
            assert!(description.id < CodecId::FIRST_RESERVED);
            assert!(description.levels.contains(&description.default_level));
            assert!(!names.contains(&description.name));
            names.push(description.name);
            assert_eq!(
                by_name(description.name).map(|c| c.describe().id),
                Some(description.id)
            );
        }
        assert!(!supported(CodecId(9)));
        assert!(!supported(CodecId(0x8001)));
        assert!(CodecId(0x8001).is_foreign());
        assert_eq!(CodecId(0x8001).to_string(), "#32769");
        assert_eq!(CodecId::PPMD.to_string(), "ppmd");
    }

    #[test]
    fn levels_out_of_range_are_refused() {
        let raw = [7_u8; 100];
        for codec in codecs() {
            let levels = codec.describe().levels;
            for level in [*levels.start() - 1, *levels.end() + 1, i32::MIN, i32::MAX] {
                let result = codec.encode(
                    &mut Workspace::new(),
                    &raw,
                    &Settings::level(level),
                    &mut Vec::new(),
                );
                assert!(
                    matches!(result, Err(Error::Setting { name: "level", .. })),
                    "{}: {result:?}",
                    codec.describe().name
                );
            }
        }
    }
}
