//! Properties of all codecs.

use super::decode::{codec, decode_in_chunks_within, decode_to_end};
use super::zpaq;
use crate::codec::LrzipCodec;
use crate::encoder::{LrzipPlan, encode_lrzip_block};

/// Decoding arbitrary bytes does not panic and terminates, and its result does not depend on the
/// size of the chunks. ZPAQ decodes them as its reference implementation does, also in a model
/// derived from them.
pub fn decodes_arbitrary_bytes(choice: u8, data: &[u8], raw_length_bytes: usize) {
    let decode = |chunk_bytes| decode_to_end(codec(choice), data, raw_length_bytes, chunk_bytes);
    let whole = decode((usize::MAX / 2, usize::MAX / 2));
    let chunked = decode((1 + data.len() / 7, 1000));
    assert_eq!(whole.is_ok(), chunked.is_ok());
    if let (Ok(whole), Ok(chunked)) = (whole, chunked) {
        assert!(whole == chunked, "the chunk size changes the output");
    }
    if codec(choice) == LrzipCodec::Zpaq {
        zpaq::matches_reference(data, raw_length_bytes);
        zpaq::models_match_reference(data);
    }
}

/// Selects a plan.
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
        // The models of the highest levels use hundreds of megabytes.
        _ => LrzipPlan::Zpaq {
            level: 1 + choice / 8 % 7,
        },
    }
}

/// Any block decodes to its content, in one step and in chunks.
pub fn round_trips(choice: u8, raw: &[u8]) {
    let plan = plan(choice);
    let mut encoded = vec![7];
    let result = encode_lrzip_block(plan, raw, &mut encoded);
    assert!(result.is_ok(), "{plan:?}: {result:?}");
    assert_eq!(encoded.first(), Some(&7), "the encoder appends");
    let data = encoded.get(1..).unwrap_or_default();
    for chunk_bytes in [usize::MAX / 2, 1000] {
        let decoded = decode_in_chunks_within(
            plan.memory_bytes(),
            plan.codec(),
            data,
            raw.len(),
            (chunk_bytes, chunk_bytes),
        );
        assert!(
            decoded.is_ok_and(|decoded| decoded == raw),
            "{plan:?} in chunks of {chunk_bytes}"
        );
    }
    if plan.codec() == LrzipCodec::Zpaq {
        zpaq::reference_decodes(data, raw);
    }
}
