//! The settings of a codec.

/// Tuning of one codec. Fields that a codec has no use for are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Level in the codec's own scale (`CodecDescription::levels`); `None`: its default.
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
