//! Door: any bytes taken for frames, once as they are and once with their checksums set right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::property::parse_anything;

fuzz_target!(|data: &[u8]| {
    parse_anything(data);
    parse_anything(&refrain_fuzz::resealed(data));
});
