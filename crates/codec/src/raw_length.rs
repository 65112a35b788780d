//! The limit on the length of a block.

use crate::error::{Error, Result};

/// Largest block, in raw bytes. Keeps positions in 32 bits with room, also on 32-bit machines, and
/// inside the window that every zstd build takes (2^30).
pub const MAX_RAW_LENGTH_BYTES: u64 = 1 << 30;

/// The raw length as a size in memory, if it is in `1..=MAX_RAW_LENGTH_BYTES`.
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
