//! The form of zstd frame in blocks (RFC 8878, 3.1.1), and its check.

use crate::error::{Error, Result};
use crate::id::CodecId;

use super::{WINDOW_LOG_MIN, ceil_log2};

/// The bytes of the frame header that `configure` selects: descriptor and window.
const HEADER_BYTES: usize = 2;
/// A descriptor without content size, single segment, checksum and dictionary.
const DESCRIPTOR: u8 = 0;
/// The bytes of a block header: last-block bit, two bits of type, 21 bits of size.
const BLOCK_HEADER_BYTES: usize = 3;

/// Checks that `data` is one frame as written by `encode` (RFC 8878, 3.1.1): plain header, window
/// no larger than the block can need, and blocks that end where the data ends. zstd itself would
/// accept several frames, and any window when it decodes a whole block.
pub(super) fn check_frame(data: &[u8], raw_length_bytes: u64) -> Result<()> {
    let refuse = |cause| Error::Damaged {
        codec: CodecId::ZSTD,
        cause,
    };
    let (&[descriptor, window], mut blocks) = data
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or(refuse("no frame header"))?;
    if descriptor != DESCRIPTOR {
        return Err(refuse("frame descriptor with flags"));
    }
    if window_bytes(window) > 1 << ceil_log2(raw_length_bytes) {
        return Err(refuse("window larger than the block"));
    }
    loop {
        let (&[a, b, c], rest) = blocks
            .split_first_chunk::<BLOCK_HEADER_BYTES>()
            .ok_or(refuse("truncated"))?;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let is_last = header & 1 == 1;
        let is_run = header >> 1 & 3 == 1;
        let size = if is_run { 1 } else { (header >> 3) as usize };
        blocks = rest.get(size..).ok_or(refuse("truncated"))?;
        if is_last {
            break;
        }
    }
    match blocks.is_empty() {
        true => Ok(()),
        false => Err(refuse("bytes after the end")),
    }
}

/// The window stated by the byte of a frame header (RFC 8878, 3.1.1.1.2): five bits of exponent,
/// three of mantissa.
fn window_bytes(byte: u8) -> u64 {
    let base = 1_u64 << (u32::from(byte >> 3) + WINDOW_LOG_MIN);
    base + base / 8 * u64::from(byte & 7)
}
