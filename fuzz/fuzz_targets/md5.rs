//! MD5 in parts and of several inputs at once, compared with the algorithm of the RFC.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_protect::property::{md5_in_lanes, md5_in_parts};

/// Bytes, where to cut them, other inputs, and where to cut those.
type Input = (Vec<u8>, Vec<u16>, Vec<(u8, u8)>, u8);

fuzz_target!(|input: Input| {
    let (bytes, cuts, ranges, cut) = input;
    md5_in_parts(&bytes, &cuts);
    let inputs: Vec<&[u8]> = ranges
        .iter()
        .map(|&(from, length)| {
            let from = usize::from(from).min(bytes.len());
            &bytes[from..bytes.len().min(from + usize::from(length))]
        })
        .collect();
    md5_in_lanes(&inputs, usize::from(cut));
});
