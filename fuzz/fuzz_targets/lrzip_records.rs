//! Parses any bytes as the records of an lrzip archive, and as its header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::lrzip::property::{
    any_bytes_parse_as_a_header, records_do_not_depend_on_parts,
};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (width, part, data) = input;
    any_bytes_parse_as_a_header(data);
    records_do_not_depend_on_parts(data, width, usize::from(part));
});
