//! Reads any bytes as an encrypted archive and changes its slots. If the first byte is odd, the
//! checksums of the two copies of its header are made valid.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::envelope::envelope_survives;
use refrain_format::{FRAME_HEADER_BYTES, MAGIC};
use refrain_fuzz::with_valid_checksums;

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((first, archive)) if first % 2 == 1 && archive.len() > headers_end(archive) => {
        let (headers, records) = archive.split_at(headers_end(archive));
        envelope_survives(&[&with_valid_checksums(headers), records].concat());
    }
    Some((_, archive)) => envelope_survives(archive),
    None => {}
});

/// Where the second copy ends, by the length that the first states.
fn headers_end(archive: &[u8]) -> usize {
    let length = archive.get(MAGIC.len() + 16..MAGIC.len() + 20);
    let length = length.map_or(0, |length| {
        u32::from_le_bytes(length.try_into().expect("four"))
    });
    MAGIC.len() + 2 * (FRAME_HEADER_BYTES + length as usize)
}
