//! Door: any bytes taken for frames, once as they are and once with their checksums set right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::property::parse_any_bytes;

fuzz_target!(|data: &[u8]| {
    parse_any_bytes(data);
    parse_any_bytes(&refrain_fuzz::resealed(data));
});
