//! Decodes blocks in chunks of given sizes.

use refrain_codec::Result;

use crate::codec::LrzipCodec;
use crate::decoder::LrzipDecoder;
use crate::filter::LrzipFilter;

/// The memory that a forged block may request, in bytes.
const MEMORY_BYTES_MAX: u64 = 32 << 20;

/// Selects a codec.
#[must_use]
pub fn codec(choice: u8) -> LrzipCodec {
    let lzma = |filter| LrzipCodec::Lzma {
        properties: 0x5D,
        dictionary_bytes: 1 << 20,
        filter,
    };
    match choice % 10 {
        0 => LrzipCodec::Stored,
        1 => LrzipCodec::Bzip2,
        2 => LrzipCodec::Zlib,
        3 => LrzipCodec::Lzo,
        4 => LrzipCodec::Zpaq,
        5 => lzma(None),
        6 => lzma(Some(LrzipFilter::X86)),
        7 => lzma(Some(LrzipFilter::Arm64)),
        8 => LrzipCodec::Zstd,
        _ => lzma(Some(LrzipFilter::Delta { distance_bytes: 3 })),
    }
}

/// Decodes a block in chunks of these sizes.
///
/// # Errors
/// The decoder's.
pub fn decode_in_chunks(
    codec: LrzipCodec,
    data: &[u8],
    raw_length_bytes: usize,
    input_chunk_bytes: usize,
    output_chunk_bytes: usize,
) -> Result<Vec<u8>> {
    let chunk_bytes = (input_chunk_bytes, output_chunk_bytes);
    decode_in_chunks_within(MEMORY_BYTES_MAX, codec, data, raw_length_bytes, chunk_bytes)
}

/// Decodes a block as [`decode_in_chunks`] does, and its end if it has a checksum. Otherwise the
/// size of the chunks decides whether damage after the last raw byte is found.
pub(crate) fn decode_to_end(
    codec: LrzipCodec,
    data: &[u8],
    raw_length_bytes: usize,
    (input_chunk_bytes, output_chunk_bytes): (usize, usize),
) -> Result<Vec<u8>> {
    let mut decoder = LrzipDecoder::new(codec, raw_length_bytes as u64, MEMORY_BYTES_MAX)?;
    let chunk_bytes = (input_chunk_bytes, output_chunk_bytes);
    let (raw, mut consumed) = decode_with(&mut decoder, data, raw_length_bytes, chunk_bytes)?;
    while codec.has_checksum() && !decoder.has_checked_end() {
        let input_end = data.len().min(consumed + input_chunk_bytes);
        let is_last = input_end == data.len();
        consumed += decoder.check_end(&data[consumed..input_end], is_last)?;
    }
    Ok(raw)
}

pub(crate) fn decode_in_chunks_within(
    memory_bytes: u64,
    codec: LrzipCodec,
    data: &[u8],
    raw_length_bytes: usize,
    chunk_bytes: (usize, usize),
) -> Result<Vec<u8>> {
    let mut decoder = LrzipDecoder::new(codec, raw_length_bytes as u64, memory_bytes)?;
    let decoded = decode_with(&mut decoder, data, raw_length_bytes, chunk_bytes)?;
    Ok(decoded.0)
}

/// Decodes all raw bytes. Also returns the number of bytes consumed.
fn decode_with(
    decoder: &mut LrzipDecoder,
    data: &[u8],
    raw_length_bytes: usize,
    (input_chunk_bytes, output_chunk_bytes): (usize, usize),
) -> Result<(Vec<u8>, usize)> {
    let mut raw = vec![0; raw_length_bytes];
    let (mut consumed, mut produced) = (0, 0);
    while produced < raw.len() {
        let input_end = data.len().min(consumed + input_chunk_bytes);
        let output_end = raw.len().min(produced + output_chunk_bytes);
        let is_last = input_end == data.len();
        let progress = decoder.step(
            &data[consumed..input_end],
            is_last,
            &mut raw[produced..output_end],
        )?;
        consumed += progress.consumed_bytes;
        produced += progress.produced_bytes;
    }
    Ok((raw, consumed))
}
