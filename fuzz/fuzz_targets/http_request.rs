//! Heads of HTTP requests in any bytes, their targets, conditions and ranges, and names in pages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_server::http::property::{escaped_name, range, request_head};

fuzz_target!(|input: (&[u8], u16, u64)| {
    let (bytes, cut, length_bytes) = input;
    request_head(bytes, usize::from(cut));
    range(bytes, length_bytes);
    escaped_name(bytes);
});
