//! The sizes of MD5.

/// The length of an MD5 digest in bytes.
pub const MD5_BYTES: usize = 16;

pub(super) const BLOCK_BYTES: usize = 64;

pub(super) type Block = [u8; BLOCK_BYTES];
