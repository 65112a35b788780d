//! Door: any bytes as the records of an lrzip archive, and as its header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::lrzip::property::{headers_survive, records_do_not_depend_on_pieces};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (width, piece, data) = input;
    headers_survive(data);
    records_do_not_depend_on_pieces(data, width, usize::from(piece));
});
