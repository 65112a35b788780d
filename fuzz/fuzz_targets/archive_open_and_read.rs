//! Door: any bytes taken for an archive whose checksums are right, so that what lies behind the frames is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::archive_survives;
use refrain_fuzz::resealed;

fuzz_target!(|data: &[u8]| archive_survives(&resealed(data)));
