//! Recovery data of any bytes: lost slices are healed, and a search in damaged bytes finds nothing
//! wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_fuzz::{Part, content};
use refrain_protect::recovery::property::{losses_are_healed, search_is_right};

fuzz_target!(|input: (Vec<Part>, Vec<(u16, u16)>, u16, u64)| {
    let (parts, ranges, share, seed) = input;
    let bytes = content(&parts);
    if bytes.is_empty() {
        return;
    }
    losses_are_healed(&bytes, u32::from(share), seed);
    let damaged: Vec<u8> = ranges
        .iter()
        .flat_map(|&(from, length)| {
            let from = usize::from(from).min(bytes.len());
            &bytes[from..bytes.len().min(from + usize::from(length))]
        })
        .copied()
        .collect();
    search_is_right(&bytes, &damaged);
});
