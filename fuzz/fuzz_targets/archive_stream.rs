//! Door: any bytes taken for an archive, by pipe, by file and by index.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::archive_survives;

fuzz_target!(|data: &[u8]| archive_survives(data));
