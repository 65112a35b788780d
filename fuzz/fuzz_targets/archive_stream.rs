//! Door: any bytes taken for an archive on a pipe, once as they are and once with their checksums set right.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use refrain::{Unwatched, verify_stream};
use refrain_fuzz::{READ_OPTIONS, resealed};

fuzz_target!(|data: &[u8]| {
    for archive in [data.to_vec(), resealed(data)] {
        let _ = verify_stream(Box::new(Cursor::new(archive)), &READ_OPTIONS, &Unwatched);
    }
});
