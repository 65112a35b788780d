//! Unpacks the packed section of an Extents frame with a valid checksum: any bytes, or a valid
//! section with edits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::property::extents_from_seed;
use refrain_format::{
    Coding, Extent, ExtentsHeader, FRAME_HEADER_BYTES, Limits, pack_extents, unpack_extents,
};
use refrain_protect::checksum64;

#[derive(Debug, arbitrary::Arbitrary)]
enum Section<'a> {
    Any {
        content_start: u64,
        content_bytes: u64,
        store_start: u64,
        fresh_bytes: u64,
        extent_count: u16,
        raw: &'a [u8],
    },
    Edited {
        seed: u64,
        count: u8,
        edits: Vec<(u16, u8)>,
        content_more: u8,
        fresh_more: u8,
        count_more: u8,
    },
}

/// Returns a section and the header that the input describes for it.
fn section(input: Section<'_>) -> (ExtentsHeader, Vec<u8>) {
    let (content_start, content_bytes, store_start, fresh_bytes, extent_count, raw) = match input {
        Section::Any {
            content_start,
            content_bytes,
            store_start,
            fresh_bytes,
            extent_count,
            raw,
        } => (
            content_start,
            content_bytes,
            store_start,
            fresh_bytes,
            u64::from(extent_count),
            raw.to_vec(),
        ),
        Section::Edited {
            seed,
            count,
            edits,
            content_more,
            fresh_more,
            count_more,
        } => {
            let (content_start, store_start, extents) =
                extents_from_seed(seed, 1 + usize::from(count));
            let packed = pack_extents(content_start, store_start, &extents).expect("valid extents");
            let mut raw = packed.raw;
            for (at, change) in edits {
                let at = usize::from(at) % raw.len();
                raw[at] ^= change;
            }
            let content_bytes = packed.content_bytes + u64::from(content_more);
            let fresh_bytes = packed.fresh_bytes + u64::from(fresh_more);
            (
                content_start,
                content_bytes,
                store_start,
                fresh_bytes,
                packed.extent_count + u64::from(count_more),
                raw,
            )
        }
    };
    let header = ExtentsHeader {
        epoch_id: 0,
        content_start,
        content_bytes,
        store_start,
        fresh_bytes,
        extent_count,
        packed_raw_bytes: raw.len() as u64,
        packed_checksum: checksum64(&raw),
        coding: Coding::none(),
    };
    (header, raw)
}

fuzz_target!(|input: Section<'_>| {
    let (header, raw) = section(input);
    // The section goes through a frame, as for a reader; a header that `parse` rejects does not get
    // here.
    let mut builder = ExtentsHeader::builder(Vec::new());
    builder.payload().extend_from_slice(&raw);
    let Ok(frame) = header.finish(builder) else {
        return;
    };
    let limits = Limits::default();
    let (header, raw) = ExtentsHeader::parse(&frame[FRAME_HEADER_BYTES..], &limits)
        .expect("what was written is accepted");
    let Ok(extents) = unpack_extents(&header, raw, &limits) else {
        return;
    };
    let content: u64 = extents.iter().map(Extent::length).sum();
    assert_eq!(content, header.content_bytes);
    let mut introduced_end = header.store_start;
    for extent in &extents {
        match *extent {
            Extent::Fresh { length } => introduced_end += length,
            Extent::Copy {
                length,
                offset_in_store,
            } => assert!(offset_in_store + length <= introduced_end),
            Extent::Reference {
                length,
                offset_in_content,
            } => assert!(offset_in_content + length <= header.content_start),
            Extent::Fill { .. } => {}
        }
    }
    assert_eq!(introduced_end, header.store_start + header.fresh_bytes);
    let packed = pack_extents(header.content_start, header.store_start, &extents)
        .expect("what was read can be written");
    assert_eq!(packed.raw, raw, "two encodings of the same extents");
});
