//! What must hold for all foreign blocks; shared by proptest and the fuzz target.

use super::decode::{codec, opened, opened_within};
use super::zpaq;
use crate::codec::LrzipCodec;
use crate::encoder::{LrzipPlan, encode_lrzip_block};

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
    if codec(choice) == LrzipCodec::Zpaq {
        zpaq::same_as_the_twin(data, raw_length_bytes);
        zpaq::models_agree(data);
    }
}

/// How `choice` says to code a block.
#[must_use]
pub fn plan(choice: u8) -> LrzipPlan {
    let level = 1 + choice / 8 % 9;
    match choice % 6 {
        0 => LrzipPlan::Stored,
        1 => LrzipPlan::Bzip2 { level },
        2 => LrzipPlan::Zlib { level },
        3 => LrzipPlan::Lzo,
        4 => LrzipPlan::Lzma {
            level,
            dictionary_bytes: 1 << 20,
        },
        // Models of the highest levels take hundreds of megabytes.
        _ => LrzipPlan::Zpaq {
            level: 1 + choice / 8 % 7,
        },
    }
}

/// Any bytes as a block come back, in pieces too.
pub fn round_trips(choice: u8, raw: &[u8]) {
    let plan = plan(choice);
    let mut coded = vec![7];
    let encoded = encode_lrzip_block(plan, raw, &mut coded);
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
    if plan.codec() == LrzipCodec::Zpaq {
        zpaq::twin_opens(data, raw);
    }
}
