//! Decodes any bytes as a block that another program coded, in any parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_lrzip_codec::property::blocks::decodes_arbitrary_bytes;

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (codec, raw_length_bytes, data) = input;
    decodes_arbitrary_bytes(codec, data, usize::from(raw_length_bytes));
});
