//! Numbers of codecs, as archives store them.

use std::fmt;

use crate::codec;

/// Number of a codec. 0..=15 are assigned below, 16..=255 are reserved for our own codecs to come,
/// 256..=0x7FFF are unassigned, and 0x8000 and above are foreign (plugins).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodecId(pub u16);

impl CodecId {
    /// Stored as it is.
    pub const NONE: Self = Self(0);
    /// LZ4 block format.
    pub const LZ4: Self = Self(1);
    /// One Zstandard frame (RFC 8878) without its magic number.
    pub const ZSTD: Self = Self(2);
    /// Raw LZMA2.
    pub const LZMA: Self = Self(3);
    /// One bzip2 stream.
    pub const BZIP2: Self = Self(4);
    /// Raw deflate (RFC 1951).
    pub const DEFLATE: Self = Self(5);
    /// PPMd variant H with 7z's range coder.
    pub const PPMD: Self = Self(6);
    /// Block sorting with a mixing model.
    pub const BWT: Self = Self(7);
    /// Context mixing.
    pub const CM: Self = Self(8);
    /// LZO1X, in foreign archives only.
    pub const LZO: Self = Self(0x7F01);
    /// ZPAQ, in foreign archives only.
    pub const ZPAQ: Self = Self(0x7F02);
    /// First id reserved for codecs of our own to come.
    pub const FIRST_RESERVED: Self = Self(16);
    /// First id of foreign codecs.
    pub const FIRST_FOREIGN: Self = Self(0x8000);

    /// True for ids that only a plugin can implement.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        self >= Self::FIRST_FOREIGN
    }

    /// Name as in options and listings; `None` when this build does not know the codec.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::LZO => Some("lzo"),
            Self::ZPAQ => Some("zpaq"),
            _ => codec::by_id(self).ok().map(|codec| codec.describe().name),
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
