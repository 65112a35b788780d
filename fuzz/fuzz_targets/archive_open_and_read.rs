//! Reads any bytes as an archive whose checksums were made valid, so that the code after the frame
//! checks is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::archive_survives;
use refrain_fuzz::with_valid_checksums;

fuzz_target!(|data: &[u8]| archive_survives(&with_valid_checksums(data)));
