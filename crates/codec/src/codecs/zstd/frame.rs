//! The form of zstd frame in blocks (RFC 8878, 3.1.1), and its check.

use crate::error::{Error, Result};
use crate::id::CodecId;

use crate::raw_length::window_limit_bytes;

/// The smallest window that zstd supports, log2 of bytes.
pub(super) const WINDOW_LOG_MIN: u32 = 10;

/// The largest window used, log2 of bytes: the largest block, and the limit of 32-bit builds.
pub(super) const WINDOW_LOG_MAX: u32 = 30;

/// The bytes of the frame header that `configure` selects: descriptor and window.
const HEADER_BYTES: usize = 2;
/// A descriptor without content size, single segment, checksum and dictionary.
const DESCRIPTOR: u8 = 0;
/// The bytes of a block header: last-block bit, two bits of type, 21 bits of size.
const BLOCK_HEADER_BYTES: usize = 3;

/// Checks that `data` is one frame (RFC 8878, 3.1.1) of the form that archives use: plain header, a
/// window within the limit, and blocks that end where the data ends. zstd itself would accept
/// several frames, and any window and long runs when it decodes a whole block.
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
    let limit_bytes = window_limit_bytes(raw_length_bytes);
    if window_bytes(window) > limit_bytes {
        return Err(Error::Limit {
            codec: CodecId::ZSTD,
            what: "window",
            stated_bytes: window_bytes(window),
            limit_bytes,
        });
    }
    let block_bytes_max = window_bytes(window).min(1 << FRAME_BLOCK_LOG);
    loop {
        let header = BlockHeader::read(blocks).ok_or(refuse("truncated"))?;
        if header.size_bytes > block_bytes_max {
            return Err(refuse("block larger than the window or 128 KiB"));
        }
        blocks = (blocks.get(header.stored_bytes..)).ok_or(refuse("truncated"))?;
        if header.is_last {
            break;
        }
    }
    if blocks.is_empty() { Ok(()) } else { Err(refuse("bytes after the end")) }
}

/// The header of a block (RFC 8878, 3.1.1.2).
struct BlockHeader {
    is_last: bool,
    size_bytes: u64,
    /// With the header; a run stores one byte.
    stored_bytes: usize,
}

impl BlockHeader {
    fn read(block: &[u8]) -> Option<BlockHeader> {
        let &[a, b, c] = block.first_chunk::<BLOCK_HEADER_BYTES>()?;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let is_run = header >> 1 & 3 == 1;
        let size = header >> 3;
        Some(BlockHeader {
            is_last: header & 1 == 1,
            size_bytes: u64::from(size),
            stored_bytes: BLOCK_HEADER_BYTES + if is_run { 1 } else { size as usize },
        })
    }
}

/// The blocks of a frame after its header, with their headers, as far as they are there: the last
/// one may be cut off, and what follows the last block of the frame is not distinguished.
pub(super) fn blocks(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let stored_bytes = BlockHeader::read(rest).map_or(rest.len(), |header| header.stored_bytes);
        let (block, after) = rest.split_at(stored_bytes.min(rest.len()));
        rest = after;
        (!block.is_empty()).then_some(block)
    })
}

/// The largest block of a frame: a smaller window would limit it.
const FRAME_BLOCK_LOG: u32 = 17;

/// The header for decoding a prefix, whose window the decoder allocates: no larger than the raw
/// bytes need, whatever the frame states. Distances reach no further than the raw bytes.
pub(super) fn bounded_header(raw_length_bytes: u64, data: &[u8]) -> Option<[u8; HEADER_BYTES]> {
    let &[_, window] = data.first_chunk()?;
    let log = bounded_window_log(raw_length_bytes);
    let smaller = ((log - WINDOW_LOG_MIN) << 3) as u8;
    Some([DESCRIPTOR, window.min(smaller)])
}

/// log2 of the largest window in a header by [`bounded_header`].
pub(super) fn bounded_window_log(raw_length_bytes: u64) -> u32 {
    ceil_log2(raw_length_bytes).max(FRAME_BLOCK_LOG)
}

/// The window stated by the byte of a frame header (RFC 8878, 3.1.1.1.2): five bits of exponent,
/// three of mantissa.
fn window_bytes(byte: u8) -> u64 {
    let base = 1_u64 << (u32::from(byte >> 3) + WINDOW_LOG_MIN);
    base + base / 8 * u64::from(byte & 7)
}

/// log2 of the smallest window that contains the block, within the limits of zstd.
pub(super) fn ceil_log2(raw_length_bytes: u64) -> u32 {
    let length = raw_length_bytes.clamp(1 << WINDOW_LOG_MIN, 1 << WINDOW_LOG_MAX);
    length.next_power_of_two().trailing_zeros()
}
