//! The sizes of MD5.

/// The length of an MD5 digest in bytes.
pub const MD5_BYTES: usize = 16;

/// The length of a block in bytes.
pub(super) const BLOCK_BYTES: usize = 64;

/// One block.
pub(super) type Block = [u8; BLOCK_BYTES];
