//! Any bytes taken apart as a tar stream, also after their checksums were made valid, and put
//! together again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_entries::tar::property::{Cuts, tar_streams_come_back, with_valid_checksums};

fuzz_target!(|input: (u16, u8, bool, &[u8])| {
    let cuts = Cuts {
        window_bytes: usize::from(input.0),
        restart_every: usize::from(input.1),
    };
    let mut stream = input.3.to_vec();
    if input.2 {
        with_valid_checksums(&mut stream);
    }
    tar_streams_come_back(&stream, cuts);
});
