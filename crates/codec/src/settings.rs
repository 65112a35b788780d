//! The settings of a codec.

/// The tuning of one codec. A codec ignores the fields that do not apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// The level in the scale of the codec (`CodecDescription::levels`); `None`: its default.
    pub level: Option<i32>,
    /// zstd: log2 of the window; lzma: log2 of the dictionary, in bytes. `None`: the length of the
    /// block.
    pub window_log: Option<u32>,
    /// zstd: long-distance matching within the block.
    pub long_distance: bool,
    /// lzma: literal context bits (lc), 0..=4; `None`: 3.
    pub literal_context_bits: Option<u32>,
    /// lzma: literal position bits (lp), 0..=4, lc + lp <= 4; `None`: 0.
    pub literal_position_bits: Option<u32>,
    /// lzma: position bits (pb), 0..=4; `None`: 2.
    pub position_bits: Option<u32>,
    /// ppmd: model order, 2..=64; `None`: by level.
    pub order: Option<u32>,
    /// ppmd: the maximum model memory, in bytes; `None`: by level and block length.
    pub model_memory_bytes: Option<u32>,
}

impl Settings {
    /// Settings with a level and the defaults for everything else.
    #[must_use]
    pub fn level(level: i32) -> Self {
        Self {
            level: Some(level),
            ..Self::default()
        }
    }
}
