//! Repairs any bytes, whose checksums are made valid if the first byte is odd.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::repair::repair_survives;
use refrain_fuzz::with_valid_checksums;

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((first, archive)) if first % 2 == 1 =>
        drop(repair_survives(&with_valid_checksums(archive))),
    Some((_, archive)) => drop(repair_survives(archive)),
    None => {}
});
