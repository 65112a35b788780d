//! Door: any bytes as a block that another program coded, whatever the pieces that it is given in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_lrzip_codec::property::blocks::survives;

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (codec, raw_length_bytes, data) = input;
    survives(codec, data, usize::from(raw_length_bytes));
});
