//! Codec `zstd`, by ruzstd: one frame without its magic number.

use ruzstd::decoding::FrameDecoder;

/// In front of a frame (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The largest window of a block.
const WINDOW_BYTES_MAX: u64 = 1 << 30;

refrain_carried_decoders::module!(|params, data, raw| {
    // Descriptor 0: without content size, checksum and dictionary.
    if !params.is_empty() || data.first() != Some(&0) {
        return false;
    }
    let mut frame = Vec::new();
    if frame.try_reserve_exact(MAGIC.len() + data.len()).is_err() {
        return false;
    }
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(data);
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_BYTES_MAX);
    let raw_bytes = raw.len();
    let decoded = decoder.decode_all(&frame, raw);
    decoded.is_ok_and(|bytes| bytes == raw_bytes)
});
