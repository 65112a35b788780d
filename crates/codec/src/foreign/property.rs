//! What must hold for all foreign blocks; shared by proptest and the fuzz target.

use super::{ForeignCodec, ForeignDecoder, ForeignFilter};
use crate::error::Result;

/// Memory that a forged block may ask for.
const MEMORY_BYTES_MAX: u64 = 32 << 20;

/// The codec that `choice` stands for.
#[must_use]
pub fn codec(choice: u8) -> ForeignCodec {
    let lzma = |filter| ForeignCodec::Lzma {
        properties: 0x5D,
        dictionary_bytes: 1 << 20,
        filter,
    };
    match choice % 9 {
        0 => ForeignCodec::Stored,
        1 => ForeignCodec::Bzip2,
        2 => ForeignCodec::Zlib,
        3 => ForeignCodec::Lzo,
        4 => ForeignCodec::Zpaq,
        5 => lzma(None),
        6 => lzma(Some(ForeignFilter::X86)),
        7 => lzma(Some(ForeignFilter::Arm64)),
        _ => lzma(Some(ForeignFilter::Delta { distance_bytes: 3 })),
    }
}

/// Opens a block with pieces of these sizes; `None` stands for a piece as large as there is.
///
/// # Errors
/// What the decoder says.
pub fn opened(
    codec: ForeignCodec,
    data: &[u8],
    raw_length_bytes: usize,
    input_piece: usize,
    output_piece: usize,
) -> Result<Vec<u8>> {
    let mut decoder = ForeignDecoder::new(codec, raw_length_bytes as u64, MEMORY_BYTES_MAX)?;
    let mut raw = vec![0; raw_length_bytes];
    let (mut taken, mut made) = (0, 0);
    while made < raw.len() {
        let input_end = data.len().min(taken + input_piece);
        let output_end = raw.len().min(made + output_piece);
        let is_last = input_end == data.len();
        let progress =
            decoder.step(&data[taken..input_end], is_last, &mut raw[made..output_end])?;
        taken += progress.taken_bytes;
        made += progress.made_bytes;
    }
    Ok(raw)
}

/// Arbitrary bytes as a block: no panic, no endless loop, and the same whatever the pieces.
pub fn survives(choice: u8, data: &[u8], raw_length_bytes: usize) {
    let whole = opened(
        codec(choice),
        data,
        raw_length_bytes,
        usize::MAX / 2,
        usize::MAX / 2,
    );
    let pieces = opened(
        codec(choice),
        data,
        raw_length_bytes,
        1 + data.len() / 7,
        1000,
    );
    assert_eq!(whole.is_ok(), pieces.is_ok());
    if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
        assert!(whole == pieces, "pieces change what comes out");
    }
}
