//! Decoding a block in chunks of given sizes.

use refrain_codec::Result;

use crate::codec::LrzipCodec;
use crate::decoder::LrzipDecoder;
use crate::filter::LrzipFilter;

/// Memory that a forged block may ask for.
pub(super) const MEMORY_BYTES_MAX: u64 = 32 << 20;

/// The codec that `choice` stands for.
#[must_use]
pub fn codec(choice: u8) -> LrzipCodec {
    let lzma = |filter| LrzipCodec::Lzma {
        properties: 0x5D,
        dictionary_bytes: 1 << 20,
        filter,
    };
    match choice % 9 {
        0 => LrzipCodec::Stored,
        1 => LrzipCodec::Bzip2,
        2 => LrzipCodec::Zlib,
        3 => LrzipCodec::Lzo,
        4 => LrzipCodec::Zpaq,
        5 => lzma(None),
        6 => lzma(Some(LrzipFilter::X86)),
        7 => lzma(Some(LrzipFilter::Arm64)),
        _ => lzma(Some(LrzipFilter::Delta { distance_bytes: 3 })),
    }
}

/// Opens a block with pieces of these sizes; `None` stands for a piece as large as there is.
///
/// # Errors
/// What the decoder says.
pub fn opened(
    codec: LrzipCodec,
    data: &[u8],
    raw_length_bytes: usize,
    input_piece: usize,
    output_piece: usize,
) -> Result<Vec<u8>> {
    let pieces = (input_piece, output_piece);
    opened_within(MEMORY_BYTES_MAX, codec, data, raw_length_bytes, pieces)
}

pub(crate) fn opened_within(
    memory_bytes: u64,
    codec: LrzipCodec,
    data: &[u8],
    raw_length_bytes: usize,
    (input_piece, output_piece): (usize, usize),
) -> Result<Vec<u8>> {
    let mut decoder = LrzipDecoder::new(codec, raw_length_bytes as u64, memory_bytes)?;
    let mut raw = vec![0; raw_length_bytes];
    let (mut taken, mut made) = (0, 0);
    while made < raw.len() {
        let input_end = data.len().min(taken + input_piece);
        let output_end = raw.len().min(made + output_piece);
        let is_last = input_end == data.len();
        let progress =
            decoder.step(&data[taken..input_end], is_last, &mut raw[made..output_end])?;
        taken += progress.consumed_bytes;
        made += progress.produced_bytes;
    }
    Ok(raw)
}
