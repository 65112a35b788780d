//! Numbers of codecs, and of filters of plug-ins, as archives store them.

use std::ops::RangeInclusive;

/// The number of a codec. Each codec's file defines its own constant; `registry.rs` lists the
/// codecs in this order. Numbers up to 127 are for codecs of this project; 255 stands for codecs
/// named by a UUID; others are unassigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodecId(pub u16);

impl CodecId {
    /// LZO1X, only in archives of lrzip.
    pub const LZO: Self = Self(0x7F01);
    /// ZPAQ, only in archives of lrzip.
    pub const ZPAQ: Self = Self(0x7F02);
    /// The first number reserved for more codecs of this project.
    pub const FIRST_RESERVED: Self = Self(11);
    /// The first number after this project's.
    pub const FIRST_UNASSIGNED: Self = Self(128);
    /// A codec named by a UUID, the first 16 bytes of its parameters.
    pub const NAMED: Self = Self(255);
    /// The first and the last number of codecs of plug-ins, whose names an archive records.
    pub const PLUGINS: RangeInclusive<u16> = 0xFE00..=0xFEFF;

    /// Whether it is a plug-in's.
    #[must_use]
    pub fn is_plugin(self) -> bool {
        Self::PLUGINS.contains(&self.0)
    }
}

/// The first and the last number of filters of plug-ins.
pub(crate) const PLUGIN_FILTERS: RangeInclusive<u8> = 0xE0..=0xFF;

/// A build for WebAssembly has no table of names.
#[cfg(target_family = "wasm")]
impl std::fmt::Display for CodecId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}
