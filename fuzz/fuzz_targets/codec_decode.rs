//! Decodes any bytes as a block of any codec, with any filters, parameters and lengths.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_codec::property::check_decode;
use refrain_codec::{UntrustedBlockDescription, Workspace, codecs};

/// The longest block: longer ones exercise no other code, but cost memory.
const RAW_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, arbitrary::Arbitrary)]
struct Block<'a> {
    codec: u16,
    filters: Vec<(u8, u8)>,
    params: &'a [u8],
    fallback: u8,
    raw_length_bytes: u32,
    want_bytes: u32,
    data: &'a [u8],
}

fuzz_target!(|block: Block<'_>| {
    // Mostly codecs that exist; sometimes any number.
    let known: Vec<_> = codecs().collect();
    let codec = match block.codec {
        0xff00.. => block.codec,
        number => known[usize::from(number) % known.len()].describe().id.0,
    };
    let untrusted = UntrustedBlockDescription {
        codec,
        filters: &block.filters,
        params: block.params,
        fallback: block.fallback,
    };
    let raw_length_bytes = u64::from(block.raw_length_bytes) % (RAW_BYTES_MAX + 1);
    check_decode(
        &mut Workspace::new(),
        &untrusted,
        block.data,
        raw_length_bytes,
        u64::from(block.want_bytes) % (RAW_BYTES_MAX + 1),
    );
});
