//! The table of codecs. No other file imports them all.

use std::fmt;
use std::sync::OnceLock;

use crate::codec::{Codec, CodecDescription};
use crate::codecs::bwt::{BWT, BWT2};
use crate::codecs::bzip2::Bzip2;
use crate::codecs::cm::Cm;
use crate::codecs::deflate::Deflate;
use crate::codecs::lz::Lz;
use crate::codecs::lz4::Lz4;
use crate::codecs::lzma::Lzma;
use crate::codecs::none::Stored;
use crate::codecs::ppmd::Ppmd;
use crate::codecs::zstd::Zstd;
use crate::error::{Error, PluginKind, Result};
use crate::id::CodecId;
use crate::params::wrong_length;

/// All codecs of this build. The index is the number.
static CODECS: &[&dyn Codec] = &[
    &Stored, &Lz4, &Zstd, &Lzma, &Bzip2, &Deflate, &Ppmd, &BWT, &Cm, &Lz, &BWT2,
];

const PLUGINS_MAX: usize = 256;

/// Codecs of plug-ins, by their number from the first on.
static PLUGINS: [OnceLock<&'static dyn Codec>; PLUGINS_MAX] =
    [const { OnceLock::new() }; PLUGINS_MAX];

/// Adds the codec of a plug-in, for the rest of the process.
///
/// # Errors
/// As [`check_plugin`].
pub fn register_plugin(codec: &'static dyn Codec) -> Result<()> {
    let CodecDescription { id, name, .. } = codec.describe();
    let slot = free_slot(id, name)?;
    // Another thread may have been quicker.
    slot.set(codec).or_else(|_| free_slot(id, name).map(drop))
}

/// Checks that a plug-in's codec with this number and name can be added.
///
/// # Errors
/// `PluginNumber`, `PluginNumberTaken`, `PluginNameTaken`.
pub fn check_plugin(id: CodecId, name: &str) -> Result<()> {
    free_slot(id, name).map(drop)
}

fn free_slot(id: CodecId, name: &str) -> Result<&'static OnceLock<&'static dyn Codec>> {
    let (kind, number) = (PluginKind::Codec, u32::from(id.0));
    let slot = plugin_slot(id).ok_or(Error::PluginNumber { kind, number })?;
    if let Some(other) = slot.get() {
        let by = other.describe().name;
        return Err(Error::PluginNumberTaken { kind, number, by });
    }
    match by_name(name) {
        Some(other) => Err(Error::PluginNameTaken {
            kind,
            name: other.describe().name,
        }),
        None => Ok(slot),
    }
}

fn plugin_slot(id: CodecId) -> Option<&'static OnceLock<&'static dyn Codec>> {
    let index = id.0.checked_sub(*CodecId::PLUGINS.start())?;
    PLUGINS.get(usize::from(index))
}

/// The codecs of plug-ins that were added, by rising number.
pub fn plugins() -> impl Iterator<Item = &'static dyn Codec> {
    PLUGINS.iter().filter_map(|slot| slot.get().copied())
}

/// All codecs of this build, by rising number. Those of plug-ins are not among them.
pub fn codecs() -> impl Iterator<Item = &'static dyn Codec> {
    CODECS.iter().copied()
}

/// Returns the codec with this number.
///
/// # Errors
/// `UnsupportedCodec`.
pub fn by_id(id: CodecId) -> Result<&'static dyn Codec> {
    CODECS
        .get(usize::from(id.0))
        .or_else(|| plugin_slot(id)?.get())
        .copied()
        .ok_or(Error::UnsupportedCodec(id))
}

/// Returns the codec of a block with these parameters, whatever their length.
///
/// # Errors
/// `UnsupportedCodec`; for `CodecId::NAMED` `UnsupportedNamedCodec`, or `Description` if the
/// parameters do not begin with a UUID.
pub(crate) fn for_block(id: CodecId, params: &[u8]) -> Result<&'static dyn Codec> {
    if id != CodecId::NAMED {
        return by_id(id);
    }
    Err(match params.first_chunk() {
        Some(uuid) => Error::UnsupportedNamedCodec(*uuid),
        None => wrong_length(params.len()),
    })
}

/// Returns the codec with this name (as in `CodecDescription::name`).
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Codec> {
    codecs()
        .chain(plugins())
        .find(|codec| codec.describe().name == name)
}

/// Whether this build can read and write the codec.
#[must_use]
pub fn supported(id: CodecId) -> bool {
    by_id(id).is_ok()
}

/// Whether the codec decodes at tens of MB/s or less; false for codecs that this build does not
/// support.
#[must_use]
pub fn is_slow_to_decode(id: CodecId) -> bool {
    by_id(id).is_ok_and(Codec::is_slow_to_decode)
}

impl CodecId {
    /// The name in options and listings; `None` when this build does not support the codec.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::LZO => Some("lzo"),
            Self::ZPAQ => Some("zpaq"),
            Self::NAMED => Some("named"),
            _ => by_id(self).ok().map(|codec| codec.describe().name),
        }
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "#{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::workspace::Workspace;

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
        assert!(!supported(CodecId(CODECS.len() as u16)));
        assert!(!supported(CodecId(0x8001)));
        assert_eq!(CodecId(0x8001).to_string(), "#32769");
        assert_eq!(CodecId::PPMD.to_string(), "ppmd");
    }

    #[test]
    fn returns_an_error_for_levels_out_of_range() {
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
