//! How a block shall be squeezed: the request, not what came of it.

use crate::id::CodecId;

/// Largest block, in raw bytes. Keeps positions in 32 bits with room, also on 32-bit machines, and
/// inside the window that every zstd build takes (2^30).
pub const MAX_RAW_LENGTH_BYTES: u64 = 1 << 30;

/// Tuning of one codec. Fields that a codec has no use for are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Level in the codec's own scale (`Description::levels`); `None`: its default.
    pub level: Option<i32>,
    /// zstd: log2 of the window, lzma: log2 of the dictionary, in bytes; `None`: as large as the block.
    pub window_log: Option<u32>,
    /// zstd: long-distance matching inside the block.
    pub long_distance: bool,
    /// lzma: literal context bits (lc), 0..=4; `None`: 3.
    pub literal_context_bits: Option<u32>,
    /// lzma: literal position bits (lp), 0..=4, lc + lp <= 4; `None`: 0.
    pub literal_position_bits: Option<u32>,
    /// lzma: position bits (pb), 0..=4; `None`: 2.
    pub position_bits: Option<u32>,
    /// ppmd: model order, 2..=64; `None`: by level.
    pub order: Option<u32>,
    /// ppmd: most model memory, in bytes; `None`: by level and block length.
    pub model_memory_bytes: Option<u32>,
}

impl Settings {
    /// Settings with a level and all else by default.
    #[must_use]
    pub fn level(level: i32) -> Self {
        Self {
            level: Some(level),
            ..Self::default()
        }
    }
}

/// A codec with its tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunedCodec {
    /// The codec.
    pub codec: CodecId,
    /// Its tuning.
    pub settings: Settings,
}

/// What `encode_block` shall do with one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The codec to use if it pays.
    pub codec: CodecId,
    /// Its tuning.
    pub settings: Settings,
    /// Another one for machine code: blocks for which a branch filter wins its trial.
    pub machine_code: Option<TunedCodec>,
    /// Look for filters (branches, delta) that help, by trial on a sample.
    pub filter_trial: bool,
    /// Working memory that the codec may take on top of the raw and compressed bytes.
    pub memory_limit_bytes: u64,
}

impl Plan {
    /// A plan without filters and without a memory limit, as for small metadata.
    #[must_use]
    pub fn plain(codec: CodecId, level: i32) -> Self {
        Self {
            codec,
            settings: Settings::level(level),
            machine_code: None,
            filter_trial: false,
            memory_limit_bytes: u64::MAX,
        }
    }

    /// The codec for what is no machine code.
    pub(crate) fn planned(&self) -> TunedCodec {
        TunedCodec {
            codec: self.codec,
            settings: self.settings,
        }
    }
}
