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

/// The largest window or dictionary that every reader accepts for a block, in bytes: enough for
/// encoders that do not know the length of the block, and little beside the memory for blocks.
pub(crate) fn window_limit_bytes(raw_length_bytes: u64) -> u64 {
    let length = raw_length_bytes.min(MAX_RAW_LENGTH_BYTES);
    length.next_power_of_two().max(WINDOW_BYTES_MIN)
}

/// A window or dictionary of this size is accepted whatever the length of the block.
const WINDOW_BYTES_MIN: u64 = 8 << 20;
