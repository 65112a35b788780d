//! Reads any bytes as an archive: from a pipe, from a file and by index.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::archive_survives;

fuzz_target!(|data: &[u8]| archive_survives(data));
