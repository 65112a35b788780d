//! Recovers the intact parts of any bytes, whose checksums are made valid if the first byte is odd.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::recovery_survives;
use refrain_fuzz::with_valid_checksums;

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((first, archive)) if first % 2 == 1 => recovery_survives(&with_valid_checksums(archive)),
    Some((_, archive)) => recovery_survives(archive),
    None => {}
});
