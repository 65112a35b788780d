//! The limit on the length of a block.

use crate::error::{Error, Result};

/// The maximum length of a block, in raw bytes. Positions then fit in 32 bits with room to spare,
/// also on 32-bit machines, and a block fits in the window that every zstd build supports (2^30).
pub const MAX_RAW_LENGTH_BYTES: u64 = 1 << 30;

/// Returns the raw length as a `usize` if it is in `1..=MAX_RAW_LENGTH_BYTES`, else `RawLength`.
pub(crate) fn check_raw_length(raw_length_bytes: u64) -> Result<usize> {
    let error = Error::RawLength {
        raw_length_bytes,
        limit_bytes: MAX_RAW_LENGTH_BYTES,
    };
    if raw_length_bytes == 0 || raw_length_bytes > MAX_RAW_LENGTH_BYTES {
        return Err(error);
    }
    usize::try_from(raw_length_bytes).map_err(|_| error)
}
