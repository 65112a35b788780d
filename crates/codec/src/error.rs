//! The errors of this crate, with the values that matter in the message.

use std::fmt;
use std::ops::RangeInclusive;

use crate::id::{CodecId, PLUGIN_FILTERS};

/// The result of functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a block cannot be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// This build does not support the codec.
    UnsupportedCodec(CodecId),
    /// This build does not support a codec that is known only by its UUID (`CodecId::NAMED`).
    UnsupportedNamedCodec([u8; 16]),
    /// This build does not support the filter.
    UnsupportedFilter(u8),
    /// A plug-in has a number that none of its kind can have.
    PluginNumber {
        /// What it has.
        kind: PluginKind,
        /// The number.
        number: u32,
    },
    /// Another plug-in has the number of a plug-in.
    PluginNumberTaken {
        /// What both have.
        kind: PluginKind,
        /// The number.
        number: u32,
        /// The name of the other.
        by: &'static str,
    },
    /// Another codec or filter, of this build or of a plug-in, has the name of a plug-in.
    PluginNameTaken {
        /// What both are.
        kind: PluginKind,
        /// The name.
        name: &'static str,
    },
    /// A setting is out of the range that the codec accepts.
    Setting {
        /// The codec.
        codec: CodecId,
        /// The name of the field of `Settings`.
        name: &'static str,
        /// The given value.
        value: i64,
        /// The smallest allowed value.
        minimum: i64,
        /// The largest allowed value.
        maximum: i64,
    },
    /// A raw length of zero or above `MAX_RAW_LENGTH_BYTES`.
    RawLength {
        /// The given length.
        raw_length_bytes: u64,
        /// The largest allowed length.
        limit_bytes: u64,
    },
    /// A field of a block description has a value that no encoder writes.
    Description {
        /// The name of the field.
        field: &'static str,
        /// The value.
        value: u64,
    },
    /// The block needs more than readers have to provide: a window, a dictionary, a model.
    Limit {
        /// The codec.
        codec: CodecId,
        /// What is too large.
        what: &'static str,
        /// Its stated size, in bytes.
        stated_bytes: u64,
        /// The largest size that readers accept for the block, in bytes.
        limit_bytes: u64,
    },
    /// The compressed bytes are not valid for the codec.
    Damaged {
        /// The codec.
        codec: CodecId,
        /// The defect.
        cause: &'static str,
    },
    /// The compressed bytes do not decode to the stated length.
    Length {
        /// The codec.
        codec: CodecId,
        /// The stated raw length, in bytes.
        expected_bytes: u64,
        /// The decoded length, in bytes; a lower bound when it exceeds the stated one.
        found_bytes: u64,
    },
    /// A memory allocation failed.
    OutOfMemory {
        /// The codec.
        codec: CodecId,
        /// The size of the allocation, in bytes (an estimate).
        wanted_bytes: u64,
    },
    /// The library of the codec failed to compress.
    Encoder {
        /// The codec.
        codec: CodecId,
        /// The message of the library.
        cause: &'static str,
    },
    /// The data would not be smaller than the raw bytes.
    NoRoom {
        /// The codec.
        codec: CodecId,
    },
    /// The filter of a plug-in failed.
    FilterFailed {
        /// Its number.
        id: u8,
        /// Its name.
        name: &'static str,
        /// What it did.
        cause: &'static str,
    },
}

/// What a plug-in has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// A codec.
    Codec,
    /// A filter.
    Filter,
}

impl PluginKind {
    /// The numbers that it may have.
    #[must_use]
    pub fn numbers(self) -> RangeInclusive<u32> {
        let (first, last) = match self {
            Self::Codec => (*CodecId::PLUGINS.start(), *CodecId::PLUGINS.end()),
            Self::Filter => (
                u16::from(*PLUGIN_FILTERS.start()),
                u16::from(*PLUGIN_FILTERS.end()),
            ),
        };
        first.into()..=last.into()
    }
}

impl fmt::Display for PluginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Codec => "codec",
            Self::Filter => "filter",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedCodec(id) => write!(f, "this build does not support codec {id}"),
            Self::UnsupportedNamedCodec(uuid) => {
                f.write_str("this build does not support the codec with UUID ")?;
                write_uuid(uuid, f)
            }
            Self::UnsupportedFilter(id) => write!(f, "this build does not support filter {id}"),
            Self::PluginNumber { kind, number } => {
                let numbers = kind.numbers();
                write!(
                    f,
                    "its number {number} is not one for {kind}s of plug-ins: those are {} to {}",
                    numbers.start(),
                    numbers.end()
                )
            }
            Self::PluginNumberTaken { kind, number, by } => write!(
                f,
                "its number {number} is that of the plug-in '{by}', which is loaded: two {kind}s \
                 with one number cannot be"
            ),
            Self::PluginNameTaken { kind, name } => {
                write!(f, "its name '{name}' is another {kind}'s")
            }
            Self::Setting {
                codec,
                name,
                value,
                minimum,
                maximum,
            } => write!(
                f,
                "{codec}: setting {name} is {value}; allowed: {minimum} to {maximum}"
            ),
            Self::RawLength {
                raw_length_bytes,
                limit_bytes,
            } => write!(
                f,
                "block of {raw_length_bytes} raw bytes; allowed: 1 to {limit_bytes}"
            ),
            Self::Description { field, value } => {
                write!(f, "invalid block description: {field} is {value}")
            }
            Self::Limit {
                codec,
                what,
                stated_bytes,
                limit_bytes,
            } => write!(
                f,
                "{codec}: {what} of {stated_bytes} bytes; the limit for this block is {limit_bytes}"
            ),
            Self::Damaged { codec, cause } => write!(f, "{codec}: damaged data: {cause}"),
            Self::Length {
                codec,
                expected_bytes,
                found_bytes,
            } => write!(
                f,
                "{codec}: data decodes to {found_bytes} bytes or more; stated: {expected_bytes}"
            ),
            Self::OutOfMemory {
                codec,
                wanted_bytes,
            } => write!(f, "{codec}: cannot allocate about {wanted_bytes} bytes"),
            Self::Encoder { codec, cause } => write!(f, "{codec}: cannot compress: {cause}"),
            Self::NoRoom { codec } => write!(f, "{codec}: does not make the bytes smaller"),
            Self::FilterFailed { id, name, cause } => write!(f, "filter {id} '{name}': {cause}"),
        }
    }
}

impl std::error::Error for Error {}

/// Writes a UUID as RFC 9562 does: 8-4-4-4-12 hexadecimal digits.
fn write_uuid(uuid: &[u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            f.write_str("-")?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}
