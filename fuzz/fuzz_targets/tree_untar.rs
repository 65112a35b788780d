//! Parses any bytes as the tar stream of a tree member, in any parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_tree::property::cuts_do_not_matter;

fuzz_target!(|input: (u16, &[u8])| cuts_do_not_matter(input.1, usize::from(input.0)));
