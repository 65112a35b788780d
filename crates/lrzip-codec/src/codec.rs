//! How the blocks of an lrzip archive are encoded.

use refrain_codec::{CodecId, Result};

use crate::filter::LrzipFilter;
use crate::zpaq;

/// How a foreign block was coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LrzipCodec {
    /// The bytes as they are.
    Stored,
    /// One bzip2 stream.
    Bzip2,
    /// One zlib stream (RFC 1950).
    Zlib,
    /// LZMA without a header; it may have an end marker.
    Lzma {
        /// `(pb * 5 + lp) * 9 + lc`.
        properties: u8,
        /// Bytes of the dictionary.
        dictionary_bytes: u32,
        /// What was done to the bytes before.
        filter: Option<LrzipFilter>,
    },
    /// LZO1X with its end marker.
    Lzo,
    /// ZPAQ blocks, with or without locator tags.
    Zpaq,
}

impl LrzipCodec {
    /// Our number of the codec.
    #[must_use]
    pub fn id(self) -> CodecId {
        match self {
            Self::Stored => CodecId::NONE,
            Self::Bzip2 => CodecId::BZIP2,
            Self::Zlib => CodecId::DEFLATE,
            Self::Lzma { .. } => CodecId::LZMA,
            Self::Lzo => CodecId::LZO,
            Self::Zpaq => CodecId::ZPAQ,
        }
    }

    /// Working memory of a decoder in bytes. `head` is the beginning of the coded bytes, [`HEADER_BYTES_MAX`] of them if there are so many:
    /// some codecs say only there what they need.
    ///
    /// # Errors
    /// `Damaged` when the beginning makes no sense.
    pub fn memory_bytes(self, head: &[u8]) -> Result<u64> {
        Ok(match self {
            Self::Stored => 0,
            Self::Bzip2 => 4 << 20,
            Self::Zlib | Self::Lzo => 128 << 10,
            Self::Lzma {
                dictionary_bytes, ..
            } => u64::from(dictionary_bytes) + (256 << 10),
            Self::Zpaq => zpaq::decoder::memory_bytes(head)?,
        })
    }
}

/// Coded bytes that tell how much memory a decoder needs: the longest header of a ZPAQ block and its tag.
pub const HEADER_BYTES_MAX: usize = (64 << 10) + 32;
