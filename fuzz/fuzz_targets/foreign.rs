//! Reads any bytes as a file of every other format: at once, in pieces, and what it states.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_foreign::property::{pieces_do_not_matter, zip_survives};

fuzz_target!(|data: &[u8]| {
    pieces_do_not_matter(data, data.len() % 7 + 1);
    zip_survives(data);
});
