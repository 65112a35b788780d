//! How the blocks of an lrzip archive are encoded.

use refrain_codec::{CodecId, Result};

use crate::filter::LrzipFilter;
use crate::{zpaq, zstd};

/// The encoding of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LrzipCodec {
    /// The raw bytes, stored.
    Stored,
    /// One bzip2 stream.
    Bzip2,
    /// One zlib stream (RFC 1950).
    Zlib,
    /// LZMA without a header, with or without an end marker.
    Lzma {
        /// `(pb * 5 + lp) * 9 + lc`.
        properties: u8,
        /// The size of the dictionary in bytes.
        dictionary_bytes: u32,
        /// The filter that was applied before LZMA.
        filter: Option<LrzipFilter>,
    },
    /// LZO1X with an end marker.
    Lzo,
    /// ZPAQ blocks, with or without locator tags.
    Zpaq,
    /// One Zstandard frame (RFC 8878).
    Zstd,
}

impl LrzipCodec {
    /// Returns the id of the codec.
    #[must_use]
    pub fn id(self) -> CodecId {
        match self {
            Self::Stored => CodecId::NONE,
            Self::Bzip2 => CodecId::BZIP2,
            Self::Zlib => CodecId::DEFLATE,
            Self::Lzma { .. } => CodecId::LZMA,
            Self::Lzo => CodecId::LZO,
            Self::Zpaq => CodecId::ZPAQ,
            Self::Zstd => CodecId::ZSTD,
        }
    }

    /// Returns whether encoded blocks may have a checksum; see [`LrzipDecoder::check_end`].
    ///
    /// [`LrzipDecoder::check_end`]: crate::LrzipDecoder::check_end
    #[must_use]
    pub fn has_checksum(self) -> bool {
        matches!(self, Self::Bzip2 | Self::Zlib | Self::Zstd)
    }

    /// Returns the working memory of a decoder in bytes. `start` is the beginning of the encoded
    /// bytes, at least [`HEADER_BYTES_MAX`] of them if the block is that long: ZPAQ and Zstandard
    /// blocks state their memory in their headers.
    ///
    /// # Errors
    /// `Damaged` if the header is invalid.
    pub fn memory_bytes(self, start: &[u8]) -> Result<u64> {
        Ok(match self {
            Self::Stored => 0,
            Self::Bzip2 => 4 << 20,
            Self::Zlib | Self::Lzo => 128 << 10,
            Self::Lzma {
                dictionary_bytes, ..
            } => u64::from(dictionary_bytes) + (256 << 10),
            Self::Zpaq => zpaq::decoder::memory_bytes(start)?,
            Self::Zstd => zstd::memory_bytes(start)?,
        })
    }
}

/// The number of encoded bytes that suffice to compute the memory of a decoder: the longest header
/// of a ZPAQ block with its tag.
pub const HEADER_BYTES_MAX: usize = (64 << 10) + 32;
