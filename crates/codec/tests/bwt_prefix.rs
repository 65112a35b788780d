//! Prefixes of valid blocks decode, also if most bytes of the prefix are escaped.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use refrain_codec::{BlockPlan, CodecId, Workspace, decode, decode_prefix, encode_block};
use refrain_testkit::{Rng, data};

/// The first byte value for which 32 equal bytes make an anchor of `bwt::repeats`: every position
/// in a run of it is one.
fn anchored_byte() -> u8 {
    let word = |byte: u8| {
        let mut z = (u64::from(byte) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z >> 32) as u32
    };
    (0..=255)
        .find(|&byte| word(byte).wrapping_neg() >> 28 == 0)
        .unwrap()
}

#[test]
fn decodes_prefixes_with_many_escaped_bytes() {
    let escape = anchored_byte();
    let mut rng = Rng::new(1);
    // Runs of the byte that are too short to be repeats; nearly every byte in them is escaped.
    let mut raw = Vec::new();
    while raw.len() < 2000 {
        raw.extend(vec![escape; rng.length(80, 94)]);
        raw.extend(
            rng.any()
                .to_le_bytes()
                .map(|byte| if byte == escape { byte ^ 1 } else { byte }),
        );
    }
    // Then enough other bytes to make the byte the rarest one, and a repeat, since repeats are
    // removed only if that saves enough.
    let mut rest = data::random(600_000, 2);
    rest.retain(|&byte| byte != escape);
    raw.extend(&rest);
    raw.extend(&rest[..100_000]);

    let mut workspace = Workspace::new();
    let mut data = Vec::new();
    let plan = BlockPlan::plain(CodecId::BWT, 1);
    let block = encode_block(&mut workspace, &raw, &plan, &mut data).unwrap();
    assert_eq!(block.codec, CodecId::BWT);
    assert_eq!(block.params.as_bytes()[0], escape);
    let (length, mut decoded) = (raw.len() as u64, Vec::new());
    decode(&mut workspace, &block, &data, length, &mut decoded).unwrap();
    assert!(decoded == raw);
    for want in [1000, 1001, 1002, 1003, 1010, 1020, 1030, 1500] {
        let result = decode_prefix(&mut workspace, &block, &data, length, want, &mut decoded);
        assert_eq!(result, Ok(()), "{want}");
        assert!(decoded == raw[..want as usize], "{want}");
    }
}
