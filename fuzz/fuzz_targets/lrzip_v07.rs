//! Door: any bytes taken for an archive of lrzip 0.7.x.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_fuzz::as_lrzip;
use refrain::property::archive_survives;

fuzz_target!(|data: &[u8]| archive_survives(&as_lrzip(7, data)));
