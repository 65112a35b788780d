//! Encodes any bytes as a block for another program and decodes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_lrzip_codec::property::blocks::round_trips;

fuzz_target!(|input: (u8, &[u8])| round_trips(input.0, input.1));
