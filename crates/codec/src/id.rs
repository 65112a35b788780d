//! Numbers of codecs, as archives store them.

/// The number of a codec. The first ones are assigned by the files of the codecs, each of which
/// defines its own constant; `registry.rs` lists the codecs in this order. Up to 127 they are for
/// codecs of this project; 255 stands for codecs that a UUID names; others are unassigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodecId(pub u16);

impl CodecId {
    /// LZO1X, only in archives of lrzip.
    pub const LZO: Self = Self(0x7F01);
    /// ZPAQ, only in archives of lrzip.
    pub const ZPAQ: Self = Self(0x7F02);
    /// The first number reserved for more codecs of this project.
    pub const FIRST_RESERVED: Self = Self(9);
    /// The first number beyond those of this project.
    pub const FIRST_UNASSIGNED: Self = Self(128);
    /// A codec that the first 16 bytes of the parameters name, a UUID.
    pub const NAMED: Self = Self(255);
}
