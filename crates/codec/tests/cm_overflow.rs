//! The hash of a match model wraps around. It must not panic where overflow is checked (development
//! and fuzzing).
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use refrain_codec::{BlockPlan, CodecId, Workspace, decode, encode_block};

#[test]
fn hash_wraps_at_the_end_of_its_range() {
    // Found by a collision search: after these bytes, the hash of `matching` is 2^64 - 1, and the
    // next byte is added to it.
    let mut raw = vec![
        151, 49, 97, 69, 68, 124, 186, 93, 112, 77, 197, 123, 63, 206, 1, 75,
    ];
    raw.resize(1000, b' ');
    let mut workspace = Workspace::new();
    let mut data = Vec::new();
    let plan = BlockPlan::plain(CodecId::CM, 2);
    let block = encode_block(&mut workspace, &raw, &plan, &mut data).unwrap();
    assert_eq!(block.codec, CodecId::CM);
    let mut decoded = Vec::new();
    decode(&mut workspace, &block, &data, 1000, &mut decoded).unwrap();
    assert!(decoded == raw);
}
