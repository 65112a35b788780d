//! What can go wrong, with the values that matter in the message.

use std::fmt;

use crate::id::CodecId;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// One failure of squeezing or opening a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No implementation for this codec id in this build.
    UnsupportedCodec(CodecId),
    /// No implementation for this filter id in this build.
    UnsupportedFilter(u8),
    /// A setting is outside of what the codec takes.
    Setting {
        /// The codec that was asked.
        codec: CodecId,
        /// Name of the field of `Settings`.
        name: &'static str,
        /// The value that was given.
        value: i64,
        /// Smallest value allowed.
        minimum: i64,
        /// Largest value allowed.
        maximum: i64,
    },
    /// A raw length of zero or above `MAX_RAW_LENGTH_BYTES`.
    RawLength {
        /// The length that was given.
        raw_length_bytes: u64,
        /// Largest length allowed.
        limit_bytes: u64,
    },
    /// A field of a block description that no encoder of ours writes.
    Description {
        /// Name of the field.
        field: &'static str,
        /// The value found.
        value: u64,
    },
    /// The compressed bytes are not what the codec writes.
    Damaged {
        /// The codec that read them.
        codec: CodecId,
        /// What was wrong.
        cause: &'static str,
    },
    /// The compressed bytes open to another length than the stated one.
    Length {
        /// The codec that read them.
        codec: CodecId,
        /// Raw length that was stated, in bytes.
        expected_bytes: u64,
        /// Raw length that was found, in bytes; when longer, a lower bound.
        found_bytes: u64,
    },
    /// The system had no memory left.
    OutOfMemory {
        /// The codec that wanted it.
        codec: CodecId,
        /// How much was wanted, in bytes (an estimate).
        wanted_bytes: u64,
    },
    /// The codec's library refused to compress.
    Encoder {
        /// The codec.
        codec: CodecId,
        /// What it said.
        cause: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedCodec(id) => write!(f, "codec {id} is not supported by this build"),
            Self::UnsupportedFilter(id) => write!(f, "filter {id} is not supported by this build"),
            Self::Setting {
                codec,
                name,
                value,
                minimum,
                maximum,
            } => write!(
                f,
                "{codec}: setting {name} is {value}, allowed are {minimum} to {maximum}"
            ),
            Self::RawLength {
                raw_length_bytes,
                limit_bytes,
            } => write!(
                f,
                "a block of {raw_length_bytes} raw bytes, allowed are 1 to {limit_bytes}"
            ),
            Self::Description { field, value } => {
                write!(f, "block description: {field} is {value}")
            }
            Self::Damaged { codec, cause } => write!(f, "{codec}: damaged data: {cause}"),
            Self::Length {
                codec,
                expected_bytes,
                found_bytes,
            } => write!(
                f,
                "{codec}: data opens to {found_bytes} or more bytes, stated are {expected_bytes}"
            ),
            Self::OutOfMemory {
                codec,
                wanted_bytes,
            } => write!(f, "{codec}: no memory for about {wanted_bytes} bytes"),
            Self::Encoder { codec, cause } => write!(f, "{codec}: cannot compress: {cause}"),
        }
    }
}

impl std::error::Error for Error {}
