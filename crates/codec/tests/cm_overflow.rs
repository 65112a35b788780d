//! The hash of a match model wraps around; it must not panic where overflow is checked (development and fuzzing).
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use refrain_codec::{BlockPlan, CodecId, Workspace, decode, encode_block};

#[test]
fn a_hash_at_the_end_of_its_range_goes_on() {
    // Found by collision search: after these, the hash of `matching` is 2^64 - 1, and the next byte is added to that.
    let mut raw = vec![
        151, 49, 97, 69, 68, 124, 186, 93, 112, 77, 197, 123, 63, 206, 1, 75,
    ];
    raw.resize(1000, b' ');
    let mut workspace = Workspace::new();
    let mut data = Vec::new();
    let plan = BlockPlan::plain(CodecId::CM, 2);
    let block = encode_block(&mut workspace, &raw, &plan, &mut data).unwrap();
    assert_eq!(block.codec, CodecId::CM);
    let mut opened = Vec::new();
    decode(&mut workspace, &block, &data, 1000, &mut opened).unwrap();
    assert!(opened == raw);
}
