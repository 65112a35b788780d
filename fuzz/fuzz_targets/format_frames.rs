//! Parses any bytes as frames, unchanged and with valid checksums.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::property::parse_any_bytes;

fuzz_target!(|data: &[u8]| {
    parse_any_bytes(data);
    parse_any_bytes(&refrain_fuzz::with_valid_checksums(data));
});
