//! What must hold for all foreign blocks; shared by proptest and the fuzz target.

use super::zpaq::property as zpaq;
use super::{ForeignCodec, ForeignDecoder, ForeignFilter, ForeignPlan, encode_foreign};
use crate::error::Result;

/// Memory that a forged block may ask for.
pub(super) const MEMORY_BYTES_MAX: u64 = 32 << 20;

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
    let pieces = (input_piece, output_piece);
    opened_within(MEMORY_BYTES_MAX, codec, data, raw_length_bytes, pieces)
}

fn opened_within(
    memory_bytes: u64,
    codec: ForeignCodec,
    data: &[u8],
    raw_length_bytes: usize,
    (input_piece, output_piece): (usize, usize),
) -> Result<Vec<u8>> {
    let mut decoder = ForeignDecoder::new(codec, raw_length_bytes as u64, memory_bytes)?;
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

/// Arbitrary bytes as a block: no panic, no endless loop, and the same whatever the pieces. ZPAQ opens them as its slow twin does, and
/// does so with what they say of a model.
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
    if codec(choice) == ForeignCodec::Zpaq {
        zpaq::same_as_the_twin(data, raw_length_bytes);
        zpaq::models_agree(data);
    }
}

/// How `choice` says to code a block.
#[must_use]
pub fn plan(choice: u8) -> ForeignPlan {
    let level = 1 + choice / 8 % 9;
    match choice % 6 {
        0 => ForeignPlan::Stored,
        1 => ForeignPlan::Bzip2 { level },
        2 => ForeignPlan::Zlib { level },
        3 => ForeignPlan::Lzo,
        4 => ForeignPlan::Lzma {
            level,
            dictionary_bytes: 1 << 20,
        },
        // Models of the highest levels take hundreds of megabytes.
        _ => ForeignPlan::Zpaq {
            level: 1 + choice / 8 % 7,
        },
    }
}

/// Any bytes as a block come back, in pieces too.
pub fn round_trips(choice: u8, raw: &[u8]) {
    let plan = plan(choice);
    let mut coded = vec![7];
    let encoded = encode_foreign(plan, raw, &mut coded);
    assert!(encoded.is_ok(), "{plan:?}: {encoded:?}");
    assert_eq!(coded.first(), Some(&7), "what stood before is kept");
    let data = coded.get(1..).unwrap_or_default();
    for piece in [usize::MAX / 2, 1000] {
        let opened = opened_within(
            plan.memory_bytes(),
            plan.codec(),
            data,
            raw.len(),
            (piece, piece),
        );
        assert!(
            opened.is_ok_and(|opened| opened == raw),
            "{plan:?} in pieces of {piece}"
        );
    }
    if plan.codec() == ForeignCodec::Zpaq {
        zpaq::twin_opens(data, raw);
    }
}
