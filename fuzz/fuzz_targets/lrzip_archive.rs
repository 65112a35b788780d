//! Reads any bytes as an archive of lrzip, of every supported version.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::archive_survives;
use refrain::property::lrzip::layout_survives;
use refrain_fuzz::as_lrzip;

fuzz_target!(|data: &[u8]| {
    let archive = as_lrzip(data);
    archive_survives(&archive);
    layout_survives(&archive);
});
