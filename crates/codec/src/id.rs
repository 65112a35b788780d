//! Numbers of codecs, as archives store them.

/// The number of a codec. 0 to 15 are assigned by the files of the codecs, each of which defines
/// its own constant; `registry.rs` lists the codecs in this order. 16 to 255 are reserved for more
/// codecs of this project, 256 to 0x7FFF are unassigned, and 0x8000 and above are for plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodecId(pub u16);

impl CodecId {
    /// LZO1X, only in archives of lrzip.
    pub const LZO: Self = Self(0x7F01);
    /// ZPAQ, only in archives of lrzip.
    pub const ZPAQ: Self = Self(0x7F02);
    /// The first number reserved for more codecs of this project.
    pub const FIRST_RESERVED: Self = Self(16);
    /// The first number of codecs that only plugins implement.
    pub const FIRST_PLUGIN: Self = Self(0x8000);

    /// Whether only a plugin can implement the codec.
    #[must_use]
    pub fn is_plugin(self) -> bool {
        self >= Self::FIRST_PLUGIN
    }
}
