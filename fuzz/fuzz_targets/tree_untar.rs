//! Any bytes parsed as the tar stream of a directory member, in pieces of any length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_entries::property::piece_length_does_not_matter;

fuzz_target!(|input: (u16, &[u8])| piece_length_does_not_matter(input.1, usize::from(input.0)));
